"""Models and the states of long fits in files: no pickle, checked, whole or not at all."""

from declip.persistence.archive import LIBRARY, Archive, checksum, read_archive, write_archive
from declip.persistence.atomic import new_file, whole_file
from declip.persistence.checkpoint import Checkpoint, fingerprint
from declip.persistence.codec import decode, encode
from declip.persistence.errors import FileError, ModelFileError
from declip.persistence.models import load, save

__all__ = [
    "LIBRARY",
    "Archive",
    "Checkpoint",
    "FileError",
    "ModelFileError",
    "checksum",
    "decode",
    "encode",
    "fingerprint",
    "load",
    "new_file",
    "read_archive",
    "save",
    "whole_file",
    "write_archive",
]
