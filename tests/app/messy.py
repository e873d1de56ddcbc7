"""Files as people have them, made anew with synthetic values: how each looks, and what is in it."""

from pathlib import Path

import numpy as np

METALS = ("Silver", "Iron", "Zinc", "Copper")


def _samples(n, m, seed=0):
    rng = np.random.default_rng(seed)
    return np.exp(rng.normal(size=(n, 1)) + 0.4 * rng.normal(size=(n, m)))


def water(folder):
    """A state agency's export: long, nondetects without a value and with a limit beside them."""
    values, limits = _samples(40, 4), [1.2, 0.6, 0.5, 0.4]
    lines = [
        "OrganizationIdentifier,MonitoringLocationIdentifier,ActivityStartDate,CharacteristicName,"
        "ResultDetectionConditionText,ResultMeasureValue,ResultMeasure/MeasureUnitCode,"
        "DetectionQuantitationLimitMeasure/MeasureValue,"
        "DetectionQuantitationLimitMeasure/MeasureUnitCode"
    ]
    for i, row in enumerate(values):
        for name, value, limit in zip(METALS, row, limits, strict=True):
            seen = value >= limit
            found = f",{value:.3g},ug/l,," if seen else f"Not Detected,,,{limit},ug/l"
            lines.append(f"STATE,site-{i % 8},2023-0{1 + i // 8}-15,{name},{found}")
    return _written(folder, "water.csv", lines)


def herons(folder):
    """Blood of herons: values with a TRUE/FALSE column that marks censored ones."""
    values = _samples(40, 3, 1)
    lines = ["Bird,Lead,LeadCen,Zinc,ZincCen,Cadmium,CadmiumCen"]
    for i, row in enumerate(values):
        cells = [f"{max(x, 0.7):.3g},{str(x < 0.7).upper()}" for x in row]
        lines.append(f"heron {i + 1},{','.join(cells)}")
    return _written(folder, "herons.csv", lines)


def proteins(folder):
    """A matrix of intensities with columns of annotation, decimal commas and semicolons."""
    values = 20 + np.log(_samples(40, 5, 2))
    runs = ("A1", "A2", "B1", "B2", "C1")
    lines = ["Protein.Ids;Genes;Peptides;" + ";".join(f"Intensity {run}" for run in runs)]
    for i, row in enumerate(values):
        cells = ["<19,5" if x < 19.5 else f"{x:.2f}".replace(".", ",") for x in row]
        lines.append(f"P{i:05d};GENE{i};{2 + i % 7};{';'.join(cells)}")
    return _written(folder, "proteins.csv", lines)


def olink(folder):
    """An export of Olink: NPX with a LOD beside each value, which is given below it as well."""
    values = np.log2(_samples(30, 4, 3))
    lines = ["SampleID;OlinkID;Assay;PlateID;NPX;LOD;QC_Warning"]
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            lines.append(f"S{i};OID{j};IL{j + 4};P1;{value:.3f};-0.8;PASS")
    return _written(folder, "olink.csv", lines)


def survey(folder):
    """A survey in Excel, with a title, a row of units and a second sheet."""
    import xlsxwriter

    rng = np.random.default_rng(4)
    answers = 3.2 + rng.normal(size=(60, 1)) + 0.5 * rng.normal(size=(60, 4))
    path = Path(folder, "survey.xlsx")
    with xlsxwriter.Workbook(path) as book:
        sheet, notes = book.add_worksheet("Answers"), book.add_worksheet("Notes")
        sheet.write_row(0, 0, ["Survey of visitors, spring"])
        sheet.write_row(2, 0, ["person", "guide", "food", "shop", "price"])
        sheet.write_row(3, 0, ["", "points", "points", "points", "points"])
        for i, row in enumerate(np.clip(np.round(answers), 1, 5)):
            sheet.write_row(4 + i, 0, [f"person {i}", *row.tolist()])
        notes.write(0, 0, "asked at the door")
    return path


def sales(folder):
    """Sales by store, article and day, with stock-outs marked in a column of their own."""
    values = np.round(20 * _samples(10, 12, 5))
    lines = ["store,sku,date,sold,stockout"]
    for k in range(120):
        i, j = divmod(k, 12)
        out = values[i, j] >= 30
        sold = min(values[i, j], 30)
        lines.append(
            f"store {i % 2},sku {i // 2},2024-01-{j + 1:02d},{sold:.0f},{'yes' if out else 'no'}"
        )
    return _written(folder, "sales.csv", lines)


def intensities(folder):
    """A matrix of intensities as a search engine writes it: empty where too little was there."""
    values = np.exp(14 + 3 * np.log(_samples(60, 6, 6)) / 2)
    runs = ("A1", "A2", "A3", "B1", "B2", "B3")
    lines = ["Protein.Ids\tGenes\t" + "\t".join(f"Intensity {run}" for run in runs)]
    for i, row in enumerate(values):
        cells = ["" if x < 4e5 else f"{x:.4g}" for x in row]
        lines.append(f"P{i:05d}\tGENE{i}\t" + "\t".join(cells))
    return _written(folder, "intensities.tsv", lines)


def ratings(folder):
    """A log of ratings, one to five stars, of three films in ten that a user might have seen."""
    rng = np.random.default_rng(7)
    taste, kind = rng.normal(size=(80, 2)), rng.normal(size=(2, 20))
    stars = np.clip(np.round(3.5 + taste @ kind), 1, 5)
    users, films = np.nonzero(rng.random(stars.shape) < 0.3)
    lines = ["user,film,stars"]
    lines += [f"u{i:02d},film {j},{stars[i, j]:.0f}" for i, j in zip(users, films, strict=True)]
    return _written(folder, "ratings.csv", lines)


def _written(folder, name, lines):
    path = Path(folder, name)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


FILES = (water, herons, proteins, olink, survey, sales)
