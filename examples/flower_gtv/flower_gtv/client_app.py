"""The ClientApp: one state on each node."""

from flower_gtv.task import ALGORITHM, load_loss
from gtvcvx.federated import flower

app = flower.client_app(load_loss, ALGORITHM)
