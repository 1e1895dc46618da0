"""Large certificates: raw arrays in a zip file, `.gtvc` (SCHEMA.md, section 8)."""
