"""The words that laboratories, shops and spreadsheets write in place of a number, or beside it."""

import re

__all__ = [
    "ABOVE",
    "BELOW",
    "CEILING_NAMES",
    "CODES",
    "CODES_BEYOND",
    "CODES_OF_ANSWERS",
    "EMPTY",
    "GONE",
    "MARKS",
    "MISSING",
    "NO",
    "QUALIFIERS",
    "SIDES",
    "UNIT",
    "YES",
    "folded",
]


# Numbers that stand for missing values in many files, among whole numbers, and beyond a scale.
CODES = (-99, -999, -9999, -99999, -999.9, -99.9, 999, 9999, 99999, 999999)
CODES_OF_ANSWERS = (77, 88, 97, 98, 99)
CODES_BEYOND = (*CODES, *CODES_OF_ANSWERS, -9, -8, -7, -1, 0, 8, 9)  # that pass a limit


def _words(text: str) -> list[str]:
    return text.split()


def folded(text: str) -> str:
    """Return a word as it is looked up: in lower case and without spaces."""
    return re.sub(r"\s", "", text).lower()


_FLOORS = _words(
    "lod loq lloq dl mdl rl mrl pql bdl limit detection detectionlimit reportinglimit "
    "quantificationlimit quantitationlimit methoddetectionlimit bg nwg nachweisgrenze "
    "bestimmungsgrenze ld lq"
)
_CEILINGS = _words("uloq ul alq aloq limit range max quantificationlimit quantitationlimit")

# All in lower case and without spaces.
BELOW = frozenset(
    [
        *_words("nd n.d. n.d n/d bdl bld blod blq bloq bql brl bmdl bmrl brql bdl. u.d.l. udl dnq"),
        *_words("lod loq lloq oor< <oor <min <low n.n. n.n n.nwb. n.nachw. nichtnachweisbar"),
        *_words("notdetected non-detect nondetect non-detected undetected detectednotquantified"),
        *(sign + name for sign in ("<", "below", "presentbelow") for name in _FLOORS),
    ]
)
ABOVE = frozenset(
    [
        *_words("uloq alq aloq aql saturated sat #sat over overrange overflow ovrflw"),
        *_words("oor> >oor >high"),
        *_words("soldout sold-out stockout stock-out outofstock oos"),
        *(sign + name for sign in (">", "above", "presentabove") for name in _CEILINGS),
    ]
)
# Beside a limit these say no more than an empty field does: that there is no value.
EMPTY = frozenset([*_words("na n/a #n/a #na <na> nan null none - -- --- \u2013 \u2014"), ""])
MISSING = EMPTY | frozenset(
    [
        *_words("n.a. n.a nil . .. ?"),
        *_words("missing nr notreported notmeasured notavailable notsampled nottested"),
    ]
)

# What a mark beside a number says of it: -1 at most this number, 1 at least, 0 as it stands.
_EXACT = _words("= == j j+ j- nj jn dnq e exact detected quantified")
MARKS = (
    dict.fromkeys(BELOW, -1)
    | dict.fromkeys(ABOVE, 1)
    | dict.fromkeys(_EXACT, 0)
    | dict.fromkeys(("<", "<=", "=<", "≤", "u", "uj", "ui", "left"), -1)
    | dict.fromkeys((">", ">=", "=>", "≥", "right"), 1)
)
# In a column of its own a mark may also be a yes or a no, whose meaning the column tells.
YES, GONE, NO = 2, 3, 4
QUALIFIERS = (
    dict.fromkeys(MISSING, 0)
    | MARKS
    | dict.fromkeys(("0", "0.0", "false", "f", "no", "n", "falsch", "nein", "uncensored"), NO)
    | dict.fromkeys(("1", "1.0", "true", "t", "yes", "y", "wahr", "ja", "censored"), YES)
)
# The meanings that a person may give to a mark.
SIDES = {"below": -1, "above": 1, "exact": 0, "missing": GONE}

# Columns whose limits, or whose yes, lie above.
CEILING_NAMES = re.compile(
    r".*(?:sold[ _.-]?out|stock|\boos\b|ausverkauft|bestand|inventory|capacity|supply|satur|uloq"
    r"|ceiling|upper|over[ _.-]?range|right[ _.-]?cens|above|maximum).*",
    re.I,
)

_BASE = (
    r"(?:[kmunpfcdhMGµμ]?(?:g|m|l|L|mol|M|Pa|V|A|Hz|s|eq|Bq|S|J|W|K|t|Ci|IU|cal)|ton(?:ne)?s?|mL|dL"
    r"|%|‰|pp[mbtq]v?|°\s?[CF]?|deg(?:\s?[CF])?|psu|[NF][TN]U|JTU|ph|std\.? units?|counts?|cells?"
    r"|units?|none|days?|hours?|hrs?|h|min|sec|years?|yrs?|weeks?|a\.?u\.?|RFU|NPX|log\s?2?|IU|U|cfu"
    r"|mpn|points?|stars?|pieces?|pcs|eur|usd|gbp|€|\$|£|score|scale|ratio|index|dimensionless|n/?a|-)"
)
_POWER = r"(?:\s?\^?[-+\u2212]?[0-9¹²³⁻]+)?"
UNIT = re.compile(
    rf"[\[(]?\s*{_BASE}{_POWER}(?:\s?[/·*.\s]\s?[0-9]*\s?{_BASE}{_POWER})*\s*[\])]?", re.I
)
