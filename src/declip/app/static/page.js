const $ = id => document.getElementById(id);
const FORM = ["layout", "format", "sheet", "header", "decimal", "thousands", "replicates", "below_limit", "side"];
const ROLES = { row: "names the row", column: "names the column", value: "value", limit: "limit", qualifier: "mark (<, U, …)", unit: "unit", covariate: "feature", group: "group (plate)", aside: "left aside" };
const MEANINGS = { exact: "a value as it stands", below: "below its limit", above: "above its limit", missing: "missing" };
let key = null, job = null, asked = {};

const show = (id, yes) => { $(id).hidden = !yes; };
const fail = text => { $("error").textContent = text || ""; show("error", !!text); };
const element = (tag, text, kind) => { const made = document.createElement(tag); if (text !== undefined) made.textContent = text; if (kind) made.className = kind; return made; };

async function call(path, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "X-Declip-Secret": settings.secret }, body };
  const answer = await fetch(path, options);
  const content = await answer.json().catch(() => ({ error: "the answer cannot be read" }));
  if (!answer.ok) throw new Error(content.error || answer.statusText);
  return content;
}

function tiles(id, pairs) {
  $(id).replaceChildren(...pairs.map(([name, value]) => {
    const box = element("div");
    box.append(element("dt", name), element("dd", value.toLocaleString("en")));
    return box;
  }));
}

/* what a person types: words, lines, limits */

const words = text => text.split(/[;\n]/).map(word => word.trim()).filter(Boolean);

function pairs(text, field) {
  return Object.fromEntries(words(text).map(part => {
    const at = part.lastIndexOf("=");
    if (at < 1) throw new Error(`${field}: write WORD = MEANING, separated by semicolons`);
    return [part.slice(0, at).trim(), part.slice(at + 1).trim().toLowerCase()];
  }));
}

function lines(text) {
  if (text.trim() === "none") return [];
  return text.split(/[,;\s]+/).filter(Boolean).flatMap(part => {
    const [, from, to] = /^(\d+)(?:-(\d+))?$/.exec(part) || [];
    if (!from || (to && to - from > 10000)) throw new Error("Lines to leave out: write numbers such as 1-3, 5");
    return Array.from({ length: (to || from) - from + 1 }, (_, k) => Number(from) + k);
  });
}

function number(text) {
  const plain = text.trim();
  return /^[^,]*,[^,.]*$/.test(plain) ? Number(plain.replace(",", ".")) : plain === "" ? NaN : Number(plain);
}

function limit(text, side) {
  if (!text.trim()) return null;
  const parts = text.split(/[;\n]|,(?=[^,;=]*[^\s\d,;=.+-][^,;=]*=)/).filter(part => part.trim());
  const given = parts.map(part => { const at = part.lastIndexOf("="); return at < 0 ? [null, number(part)] : [part.slice(0, at).trim(), number(part.slice(at + 1))]; });
  if (given.some(([, value]) => !Number.isFinite(value)) || (given.length > 1 && given.some(([name]) => name === null)))
    throw new Error(`${side}: write one number, or column = number, separated by semicolons`);
  return given[0][0] === null ? given[0][1] : Object.fromEntries(given);
}

const limitText = value => value === null || value === undefined ? "" : typeof value === "object" ? Object.entries(value).map(([name, x]) => `${name} = ${x}`).join("; ") : String(value);
const markText = marks => Object.entries(marks || {}).map(([word, meaning]) => `${word} = ${meaning}`).join("; ");

/* the file as it was understood */

function fields() {
  const said = { ...asked, ceiling: limit($("ceiling").value, "Ceiling"), floor: limit($("floor").value, "Floor") };
  for (const name of FORM) said[name] = $(name).value || null;
  said.header = { yes: true, no: false }[$("header").value] ?? null;
  said.skip = $("skip").value.trim() ? lines($("skip").value) : null;
  said.missing = words($("missing").value);
  said.marks = pairs($("marks").value, "Marks and words");
  const other = name => (said[name] ?? null) !== (asked[name] ?? null);
  const moved = JSON.stringify(said.skip) !== JSON.stringify(asked.skip ?? null);
  if (moved || ["sheet", "header", "layout", "format"].some(other)) { delete said.roles; delete said.pairs; }
  return said;
}

async function read(said) {
  show("busy", true);
  try { looked(await call(`/jobs/${key}/read`, JSON.stringify(said))); }
  finally { show("busy", false); }
}

function fillForm(reading, preview) {
  const sheets = (reading && reading.sheets.length ? reading.sheets : preview ? preview.sheets : []) || [];
  show("sheet-field", sheets.length > 0);
  $("sheet").replaceChildren(...["", ...sheets].map(name => { const made = element("option", name || (reading && reading.sheet ? `found: ${reading.sheet}` : "the first")); made.value = name; return made; }));
  for (const name of FORM) $(name).value = typeof asked[name] === "boolean" ? (asked[name] ? "yes" : "no") : asked[name] || "";
  $("skip").value = (asked.skip || []).join(", ");
  const skipped = reading ? reading.skipped.map(line => line.line) : [];
  $("skip").placeholder = `found: ${skipped.join(", ") || "none"}; or 1-3, 5`;
  $("missing").value = (asked.missing || []).join("; ");
  $("marks").value = markText(asked.marks);
  $("ceiling").value = limitText(asked.ceiling); $("floor").value = limitText(asked.floor);
}

const roleOptions = () => Object.entries(ROLES).map(([value, text]) => { const option = element("option", text); option.value = value; return option; });

function chooser(name, role, at) {
  const made = element("select");
  made.setAttribute("aria-label", `What ${name} is`);
  made.append(...roleOptions());
  made.value = role; made.dataset.column = at;
  made.addEventListener("change", guarded(async () => {
    const reading = job.summary.reading;
    const roles = reading.roles.map(([header, was], k) => [header, k === at ? made.value : was]);
    await read({ ...fields(), roles, pairs: reading.pairs, layout: null, format: null });
  }));
  return made;
}

/* columns beyond those that the preview shows, by name or pattern */

const matches = pattern => new RegExp("^" + pattern.trim().split("*").map(part => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&")).join(".*") + "$");

async function sayRole() {
  const reading = job.summary.reading, pattern = matches($("role-of").value), role = $("role-is").value;
  if (!reading.roles.some(([header]) => pattern.test(header))) throw new Error(`there is no column ${$("role-of").value}`);
  const roles = reading.roles.map(([header, was]) => [header, pattern.test(header) ? role : was]);
  await read({ ...fields(), roles, pairs: reading.pairs, layout: null, format: null });
}

function furtherRoles(preview, reading) {
  const roles = preview.more && reading ? reading.roles.slice(preview.header.length) : [], counts = {};
  show("one-role", roles.length > 0);
  for (const [, role] of roles) counts[role] = (counts[role] || 0) + 1;
  $("headers").replaceChildren(...roles.map(([header]) => { const made = element("option"); made.value = header; return made; }));
  if (!$("role-is").options.length) $("role-is").append(...roleOptions());
  return Object.entries(counts).map(([role, n]) => `${n} ${ROLES[role]}`).join(", ");
}

function drawPreview(preview, reading) {
  show("preview-box", !!preview);
  if (!preview) return;
  const roles = reading ? reading.roles : [], width = preview.header.length || (preview.lines[0] ? preview.lines[0][1].length : 0);
  const head = element("tr"), pick = element("tr");
  head.append(element("th", "line", "number")); pick.append(element("th", "", "number"));
  const roleOf = j => (roles.find(([header]) => header === preview.header[j]) || [])[1];
  const places = Array.from({ length: width }, (_, j) => j);
  const order = roles.length ? [...places.filter(j => roleOf(j) !== "aside"), ...places.filter(j => roleOf(j) === "aside")] : places;
  for (const j of order) {
    const name = preview.header[j] ?? "", at = roles.findIndex(([header]) => header === name);
    head.append(element("th", name));
    const cell = element("th");
    if (at >= 0) cell.append(chooser(name, roles[at][1], at));
    pick.append(cell);
  }
  $("preview").tHead.replaceChildren(head, ...(roles.length ? [pick] : []));
  $("preview").tBodies[0].replaceChildren(...preview.lines.map(([line, row]) => {
    const made = element("tr");
    made.append(element("td", line, "number"), ...order.map(j => element("td", row[j], roleOf(j) && "is-" + roleOf(j))));
    return made;
  }));
  const further = furtherRoles(preview, reading);
  const left = reading ? reading.skipped.map(({ line, what, text }) => `line ${line} (${what === "asked" ? "as you said" : what}: ${text})`) : [];
  const notes = [preview.more ? `${preview.more} further columns: ${further || "not shown"}.` : "", left.length ? `Left out: ${left.slice(0, 6).join("; ")}${left.length > 6 ? "; …" : ""}.` : ""];
  $("preview-note").textContent = notes.filter(Boolean).join(" ");
}

/* what is wrong, and what would solve it */

const INTO = { columns: "name columns by", rows: "name rows by", values: "take as values", ignore: "leave aside", missing: "means missing:", limit: "limits are in", qualifier: "marks are in", unit: "units are in", sheet: "read the sheet", skip: "leave out line", separator: "fields are separated by", encoding: "read the letters as" };
const SAID = { "decimal ,": "The comma is before the fraction", "decimal .": "The point is before the fraction", "thousands ,": "The comma is between thousands", "thousands .": "The point is between thousands", "replicates mean": "Take their mean", "replicates separate": "Make rows of them", "below_limit value": "Values below their limit count", "below_limit censored": "Values below their limit are censored", "layout long": "A line is a cell", "layout wide": "A line is a row", "side above": "They lie above", "side below": "They lie below" };

function remedy({ option, value, when }) {
  if (value === "...") return null;
  const [, word, meaning] = /^(.*)=([^=]*)$/.exec(value) || [];
  const known = SAID[`${option} ${value}`];
  const text = known || (option === "marks" ? `“${word}” means ${MEANINGS[meaning] || meaning}` : `${INTO[option] || option} ${value}`);
  const made = element("button", text[0].toUpperCase() + text.slice(1) + (when && !known ? ` (${when})` : ""), "plain");
  made.type = "button";
  made.addEventListener("click", guarded(() => read(remedied(fields(), option, value, word, meaning))));
  return made;
}

function remedied(said, option, value, word, meaning) {
  if (option === "marks") said.marks = { ...said.marks, [word]: meaning };
  else if (option === "missing") said.missing = [...said.missing, value];
  else if (option === "skip") said.skip = lines([...(said.skip || []), value].join(","));
  else if (["ceiling", "floor"].includes(option)) said[option] = limit(value, option);
  else if (["rows", "columns", "values", "ignore", "limit", "qualifier", "unit", "covariates", "groups"].includes(option)) {
    const role = { rows: "row", columns: "column", values: "value", ignore: "aside", covariates: "covariate", groups: "group" }[option] || option;
    const names = value.split(","), reading = job.summary.reading;
    if (!reading) return said;
    said.roles = reading.roles.map(([header, was]) => [header, names.includes(header) ? role : was]);
    said.pairs = reading.pairs;
  } else said[option] = value;
  return said;
}

const FIELD = { floor: "“Floor” below", ceiling: "“Ceiling” below", limits: "“Ceiling” or “Floor” below", marks: "“Marks and words”", missing: "“Words for missing”", skip: "“Lines to leave out”", sheet: "“Sheet”", rows: "the choice over the columns", columns: "the choice over the columns", values: "the choice over the columns", limit: "the choice over the columns", qualifier: "the choice over the columns", ignore: "the choice over the columns" };

function tellProblems(problems) {
  show("problems", problems.length > 0);
  $("problems").replaceChildren(...problems.map(problem => {
    const made = element("li", (problem.place ? problem.place + ": " : "") + problem.what + ".");
    const open = problem.remedies.filter(each => each.value === "..." && FIELD[each.option]);
    if (open.length) made.append(element("span", ` See ${open.map(each => `${FIELD[each.option]}${each.when ? ` (${each.when})` : ""}`).join(", or ")}.`));
    const roles = job.summary.reading ? job.summary.reading.roles : [];
    if (roles.some(([name, role]) => name === problem.column && role === "value")) made.append(element("span", ` If “${problem.column}” holds no values, say so in the choice over it.`));
    const buttons = problem.remedies.map(remedy).filter(Boolean);
    if (buttons.length) { const row = element("div"); row.append(...buttons); made.append(row); }
    return made;
  }));
}

/* the map of the cells */

function drawMap(map) {
  const n = map.kinds.length, m = map.kinds[0].length, canvas = $("map"), zoom = Math.max(1, Math.floor(960 / m));
  canvas.width = m * zoom; canvas.height = n;
  const brush = canvas.getContext("2d"), colours = { a: "#d55e00", b: "#0072b2", r: "#8a5bb5", m: "#9aa3ad" };
  for (let i = 0; i < n; i++) for (let j = 0; j < m; j++) {
    const kind = map.kinds[i][j];
    if (kind === ".") continue;
    brush.globalAlpha = (kind === "m" ? 0.5 : 1) * Number(map.levels[i][j]) / 9;
    brush.fillStyle = colours[kind];
    brush.fillRect(j * zoom, i, zoom - (zoom > 4 ? 1 : 0), 1);
  }
  const spans = map.names.map(name => { const made = element("span", name); made.title = name; return made; });
  $("map-names").replaceChildren(...spans);
  if (spans.some(span => span.scrollWidth > span.clientWidth)) {
    const begun = begunAlike(map.names);
    for (const span of spans) span.textContent = span.title.slice(begun);
  }
}

/* how many characters all names begin with in common, up to the last that is no letter or digit */
function begunAlike(names) {
  let n = 0;
  while (n < names[0].length && names.every(name => name[n] === names[0][n])) n++;
  return names.length > 1 ? names[0].slice(0, n).search(/[^\p{L}\p{N}][\p{L}\p{N}]*$/u) + 1 : 0;
}

/* the steps */

const propose = (id, value) => { if (!$(id).dataset.said) $(id).value = value; };
for (const id of ["log", "fill"]) $(id).addEventListener("change", () => { $(id).dataset.said = "yes"; });

function looked(answer) {
  job = answer; key = answer.key || key; asked = answer.asked || {};
  history.replaceState(null, "", "#" + key);
  const s = job.summary, understood = s.rows !== undefined;
  show("looked", true); show("done", false); $("drop").classList.add("small");
  $("name").textContent = job.name;
  fail(understood || s.problems ? "" : job.message);
  tellProblems(s.problems || []);
  show("reading", !!(s.reading || s.preview));
  $("understood").textContent = s.reading ? s.reading.words : "";
  drawPreview(s.preview, s.reading);
  fillForm(s.reading, s.preview);
  $("otherwise").open = $("otherwise").open || !understood;
  show("cells", understood);
  if (understood) {
    tiles("counts", [["rows", s.rows], ["columns", s.columns], ["exact", s.exact], ["above a limit", s.above], ["below a limit", s.below], ["missing", s.missing]]);
    const some = s.open + s.missing > 0;
    for (const id of ["map", "map-keys", "map-names"]) show(id, some);
    show("nothing", !some);
    if (some) drawMap(s.map);
    propose("log", s.log ? "yes" : "no");
    propose("fill", s.open || !s.missing ? "no" : s.low ? "low" : "yes");
  }
  show("proposal-box", !!s.proposal);
  if (s.proposal) { $("proposal").textContent = s.proposal.words; show("take", s.proposal.ceiling !== null || s.proposal.floor !== null); }
  $("start").disabled = !understood;
}

async function upload(file) {
  fail(); show("looked", false); show("done", false); key = null; $("otherwise").open = false;
  for (const id of ["log", "fill"]) delete $(id).dataset.said;
  show("busy", true);
  try {
    if (file.size > settings.maxSize) throw new Error(`the file is larger than ${settings.maxSize / 1e6} MB`);
    looked(await call("/upload?name=" + encodeURIComponent(file.name), file));
  } catch (error) { fail(error.message); } finally { show("busy", false); }
}

async function follow(now) {
  $("start").disabled = true; show("done", false); show("running", true);
  try {
    while (now.state === "running") {
      $("clock").textContent = `Restoring: ${now.seconds.toFixed(0)} s. Methods are compared on cells whose values are known. ${now.doing}`;
      $("bar").value = now.share;
      await new Promise(wake => setTimeout(wake, 300));
      now = await call(`/jobs/${key}`);
    }
    if (now.state === "cancelled") return;
    if (now.state !== "done") throw new Error(now.message);
    finished(now);
    $("done").scrollIntoView({ behavior: "smooth" });
  } finally { $("start").disabled = false; show("running", false); }
}

function finished(now) {
  $("verdict").textContent = now.summary.verdict;
  tiles("flags", Object.entries(now.summary.flags));
  for (const kind of ["table", "flags", "report"]) $("get-" + kind).href = `/jobs/${key}/${kind}?download`;
  $("report").src = `/jobs/${key}/report`;
  show("done", true);
}

async function restore() {
  const options = { log: $("log").value === "yes", effort: $("effort").value, fill_missing: $("fill").value !== "no", missing_means: $("fill").value === "low" ? "low" : "random" };
  await follow(await call(`/jobs/${key}/restore`, JSON.stringify(options)));
}

async function again() {
  const before = location.hash.slice(1);
  if (!before) return;
  const found = await fetch(`/jobs/${before}`).then(answer => answer.ok ? answer.json() : null);
  if (!found) { history.replaceState(null, "", location.pathname); return; }
  key = before;
  looked(found);
  if (found.state === "running") await follow(found);
  if (found.state === "done") finished(found);
}

const guarded = work => async event => { if (event) event.preventDefault(); fail(); try { await work(); } catch (error) { fail(error.message); } };
$("limits").addEventListener("submit", guarded(() => read(fields())));
$("form").addEventListener("submit", guarded(() => read(fields())));
$("afresh").addEventListener("click", guarded(() => read({})));
$("take").addEventListener("click", guarded(() => { const p = job.summary.proposal; return read({ ...fields(), ceiling: p.ceiling, floor: p.floor }); }));
$("go").addEventListener("submit", guarded(restore));
$("one-role").addEventListener("submit", guarded(sayRole));
$("cancel").addEventListener("click", guarded(() => call(`/jobs/${key}/cancel`, "")));
$("file").addEventListener("change", () => { if ($("file").files.length) upload($("file").files[0]); $("file").value = ""; });
for (const kind of ["dragover", "drop"]) document.addEventListener(kind, event => event.preventDefault());
$("drop").addEventListener("dragover", () => $("drop").classList.add("over"));
$("drop").addEventListener("dragleave", () => $("drop").classList.remove("over"));
$("drop").addEventListener("drop", event => { $("drop").classList.remove("over"); if (event.dataTransfer.files.length) upload(event.dataTransfer.files[0]); });
guarded(again)();
