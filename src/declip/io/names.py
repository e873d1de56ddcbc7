"""The names that columns have in files of laboratories, agencies, shops and surveys."""

from __future__ import annotations

import re

__all__ = [
    "CEILING_OF_ROW", "COLUMN", "DETECTED", "LIMIT", "LIMIT_OF_ROW", "MEASURED", "NEVER_VALUES",
    "PART_OF_COLUMN",
    "PART_OF_ROW", "QUALIFIER", "ROW", "SUMS", "SURE_QUALIFIER", "UNIT_NAME", "UNIT_OF_LIMIT",
    "VALUE",    "of_another", "plain",
]  # fmt: skip


def plain(name: str) -> str:
    """Return a name in lower case, its words apart: ``SampleID``, ``sample_id``; ``DDECen``."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})", " ", name.strip())
    return re.sub(r"[^a-z0-9<>äöüáéè]+", " ", apart.lower()).strip()


def _any(words: str, before: str = "", after: str = "") -> re.Pattern:
    listed = "|".join(word.replace("_", " ") for word in words.split())
    return re.compile(f"(?:(?:{before}) )?(?:{listed})(?: (?:{after}))?" if before else
                      f"(?:{listed})(?: (?:{after}))?")  # fmt: skip


_ID = "ids?|no|nr|number|name|label|key|code|identifier"
ROW = _any(
    "row sample subject patient person participant respondent user customer product specimen index"
    " id site station location monitoring_location well plate sku store shop animal bird plot probe"
    " proben_nr messstelle échantillon sampling_point lab_sample field_sample branch outlet article"
    " ean gtin upc filiale artikel kunde entnahmestelle muestra",
    after=_ID,
)
COLUMN = _any(
    "column col variable feature analyte parameter item movie compound protein gene test assay"
    " question week month marker biomarker metabolite substance characteristic constituent"
    " pollutant element olink chemical param result_characteristic paramètre parametername stoff"
    " analyt parámetro",
    after=_ID,
)
VALUE = _any(
    "value result rating stars measurement measured concentration conc score sales reading amount"
    " result_value npx intensity messwert wert quantity qty units_sold demand result_measure"
    " result_measure_value response signal valeur sold measure_value result_numeric ergebnis"
    " messergebnis konzentration gehalt résultat resultado absatz"
    " menge verkaufsmenge verkäufe abverkauf stückzahl umsatz ventas ventes cantidad quantité",
    after=r"(?:in )?(?:pp[mbt]|pct|percent|[munpk]?(?:g|mol|l|u|iu)"
    r"(?: (?:per )?(?:[munpkd]?(?:l|g|mol)|m3|dw|ww|dry weight|wet weight))*)",
)
# Columns of one measure, a sample each.
MEASURED = re.compile(
    r"((?:(?:max ?lfq|lfq|reporter|normali[sz]ed|corrected|raw|total) )?"
    r"(?:intensity|abundance|peak area)(?: corrected)?) .+"
)
LIMIT = _any(
    "limit lod loq lloq mdl dl rl mrl pql llod rdl edl lowerlimit nachweisgrenze bestimmungsgrenze"
    " nwg bg bestand"
    " detection_quantitation_limit_measure_measure_value detection_limit_measure_a uloq stock"
    " inventory capacity stock_on_hand on_hand available",
    "(?:method|lab|lower|sample|minimum|reporting|instrument) ?(?:detection)?",
    "value|level",
)
# What a line, or a column, of a table of measurements is called that holds limits, or sums up.
LIMIT_OF_ROW = re.compile(
    r"l?lo[dq]|m?dl|m?rl|pql|nachweisgrenze|bestimmungsgrenze|nwg|bg"
    r"|(?:method |instrument |lower )?(?:detection|reporting|quantification|quantitation) limit"
    r"|(?:lower )?limit of (?:detection|quantification|quantitation)"
)
CEILING_OF_ROW = re.compile(
    r"ulo[dq]|upper (?:(?:detection|quantification|quantitation) )?limit"
    r"|upper limit of (?:detection|quantification|quantitation)"
)
SUMS = re.compile(
    r"(?:grand )?(?:total|sum)s?|summe|gesamt|mean|average|avg|mittelwert|median|sd|std(?: dev)?"
    r"|min(?:imum)?|max(?:imum)?"
)
_LONG_LIMIT = re.compile(
    r"(?:.* )?(?:detection|reporting|quantitation|quantification|censoring|reported)"
    r" (?:limit|level)(?: (?:value|measure))?|limite de (?:quantification|détection)"
)
LIMIT = re.compile(f"{LIMIT.pattern}|{_LONG_LIMIT.pattern}")
_MARK = (
    "q|qual|quals|qualifier|qualifiers|sign|operator|modifier|cens|cen|censor|censored|censoring"
    "|nd|nondetect|non detect|detect|detected|flag|remark code|symbol|kennz|kennzeichen|vorzeichen"
)
QUALIFIER = re.compile(
    rf"(?:(?:res|result|value|lab|data|final|interpreted|validation|is|measure) )?"
    rf"(?:{_MARK}|sold ?out|stock ?out|out of stock|oos|ausverkauft|saturated"
    r"|below (?:limit|lod|loq|dl|mdl|rl)"
    r"|detect(?:ion)? condition|result detection condition)(?: (?:tf|code|codes|text|flag))?"
)
SURE_QUALIFIER = re.compile(
    r"(?:res |result |value |lab )?(?:qual|qualifiers?|sign|operator|cens|censored|censoring)"
)
# Yes means here that the value stands as it is.
DETECTED = re.compile(r"(?:is |result )?(?:detect|detected|detect flag|detected flag|quantified)")
UNIT_NAME = re.compile(
    r"(?:(?:result|value|measure|reporting|limit|result measure|detection) )?"
    r"(?:units?|uom|unit code|unit name|einheit|unité|measure unit code|measure unit)"
)
UNIT_OF_LIMIT = re.compile(
    r".*\b(?:limit|detection|quantitation|[ml]?dl|m?rl|lo[dq])\b.* (?:units?|uom|unit (?:code|a))"
    r"|(?:detection|reporting) (?:limit )?units?"
)
# What tells rows apart, or columns, beside their first name.
PART_OF_ROW = re.compile(
    rf"{ROW.pattern}|.*\b(?:date|datum|time|datetime|timestamp|zeit|zeitpunkt|uhrzeit|depth|tiefe|visit|wave"
    r"|year|jahr|month|monat|week|woche|day|tag|hour)\b.*"
)
PART_OF_COLUMN = re.compile(r"(?:.* )?(?:fraction|fraction text|matrix|medium|panel|species text)")
NEVER_VALUES = re.compile(
    r"(?:.* )?(?:date|datum)|dilution(?: factor)?|verdünnung|cas(?: ?(?:rn|no|nr|number))?"
    r"|year|month|day|time|latitude|longitude|lat|lon|lng|remarks?|comments?"
    r"|notes?"
)
_BESIDE = {
    "qualifier": rf"{_MARK}|qc",
    "limit": "lod|loq|mdl|dl|rl|mrl|limit|detection limit|lloq|reporting limit",
}


def of_another(name: str, known: dict[str, str], role: str) -> str | None:
    """Return the column that a name qualifies: ``iron`` for ``iron_qualifier`` and ``IronCen``.

    `known` maps plain names to headers.
    """
    words = _BESIDE[role]
    found = re.fullmatch(rf"(.+?) (?:{words})(?: tf)?|(?:{words}) (.+)", plain(name))
    stem = found and (found[1] or found[2])
    return known.get(stem) if stem else None
