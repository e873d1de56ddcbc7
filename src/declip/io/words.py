"""The words that laboratories and spreadsheets write in place of a number."""

__all__ = ["ABOVE", "BELOW", "MISSING", "QUALIFIERS"]


def _words(text: str) -> list[str]:
    return text.split()


_FLOORS = _words("lod loq lloq dl mdl rl pql bdl limit detection detectionlimit")
_CEILINGS = _words("uloq ul alq aloq limit range max")

# All in lower case and without spaces.
BELOW = frozenset(
    [
        *_words("nd n.d. n.d n/d bdl bld blod blq bloq bql lod loq lloq oor< <oor <min <low"),
        *_words("notdetected non-detect nondetect"),
        *(sign + name for sign in ("<", "below") for name in _FLOORS),
    ]
)
ABOVE = frozenset(
    [
        *_words("uloq alq aloq aql saturated sat overrange overflow oor> >oor >high"),
        *(sign + name for sign in (">", "above") for name in _CEILINGS),
    ]
)
MISSING = frozenset(
    [
        *_words("na n/a n.a. n.a #n/a #na <na> nan null none nil - -- --- \u2013 \u2014 . .. ?"),
        *_words("missing nr notreported notmeasured notavailable notsampled nottested"),
        "",
    ]
)

# Side of the limit on which the value lies: -1 below, 1 above, 0 known exactly.
QUALIFIERS = (
    dict.fromkeys(MISSING, 0)
    | dict.fromkeys(BELOW, -1)
    | dict.fromkeys(ABOVE, 1)
    | dict.fromkeys(("=", "==", "j", "exact", "detected", "0", "false", "no"), 0)
    | dict.fromkeys(("<", "<=", "=<", "≤", "u", "uj", "left"), -1)
    | dict.fromkeys((">", ">=", "=>", "≥", "right"), 1)
)
