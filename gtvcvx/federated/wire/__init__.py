"""What goes over a link: messages of a static schema, as bytes."""

from gtvcvx.federated.wire._frames import HEADER, Received, decoded, encoded, header_of
from gtvcvx.federated.wire._schema import Field, Kind, Message, Schema, SchemaError, WireFormat

__all__ = [
    "HEADER",
    "Field",
    "Kind",
    "Message",
    "Received",
    "Schema",
    "SchemaError",
    "WireFormat",
    "decoded",
    "encoded",
    "header_of",
]
