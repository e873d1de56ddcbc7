"""Tables read from files and written to them, with limits in their cells."""

from declip.extras import needs

with needs("files"):
    from declip.io.column_limits import read_limits
    from declip.io.errors import TableFileError, new_file
    from declip.io.formats import TableFile, TableFormat
    from declip.io.plan import ReadingPlan
    from declip.io.problems import Problem, Remedy
    from declip.io.reading import read_table
    from declip.io.writing import write_table

__all__ = [
    "Problem",
    "ReadingPlan",
    "Remedy",
    "TableFile",
    "TableFileError",
    "TableFormat",
    "new_file",
    "read_limits",
    "read_table",
    "write_table",
]
