"""An app of Flower that trains a model for each state, similar to those of its neighbours."""
