/* The source of the viewer: the list is asked for page by page. */

const PAGE = 100;

async function ask(address) {
  const answer = await fetch(address, { headers: { Accept: "application/json" } });
  const value = await answer.json().catch(() => ({ error: `The viewer answered ${answer.status}.` }));
  if (!answer.ok) throw new Error(value.error);
  return value;
}

class RemoteSource {
  constructor(base, filters, fixed = {}) {
    this.base = base;
    this.filters = filters;
    this.fixed = fixed;
    this.pages = new Map();
    this.parameters = "";
  }

  async query(wish) {
    const kept = Object.entries({ ...wish, ...this.fixed }).filter(([, value]) => value !== "" && value !== undefined);
    const parameters = new URLSearchParams(kept).toString();
    const answer = await ask(`${this.base}/samples?${parameters}&start=0&end=${PAGE}`);
    this.parameters = parameters;
    this.pages = new Map([[0, Promise.resolve(answer)]]);
    return answer;
  }

  async row(index) {
    const page = Math.floor(index / PAGE);
    if (!this.pages.has(page)) {
      const start = page * PAGE;
      this.pages.set(page, ask(`${this.base}/samples?${this.parameters}&start=${start}&end=${start + PAGE}`));
      if (this.pages.size > 40) this.pages.delete(this.pages.keys().next().value);
    }
    try { return (await this.pages.get(page)).rows[index % PAGE]; } catch { this.pages.delete(page); return null; }
  }
}

class RunSource extends RemoteSource {
  constructor(run, state) { super(`/api/run/${run}`, RunSource.filtersOf(state)); this.cells = state.cells.map((cell) => cell.name); }

  static filtersOf(state) {
    const counted = (pairs) => pairs.map(([value, count]) => [value, `${value} (${show.count(count)})`]);
    return [
      { name: "cell", label: "All cells", options: state.cells.map((cell, number) => [String(number), `${cell.name} (${show.count(cell.count)})`]) },
      { name: "standing", label: "Right and wrong", options: STANDINGS },
      { name: "outcome", label: "All outcomes", options: counted(state.outcomes) },
      { name: "category", label: "All categories", options: counted(state.categories) },
      { name: "failure", label: "All failures", options: counted(state.failures) },
    ].filter((filter) => filter.options.length > (filter.name === "cell" ? 1 : 0)).concat({ name: "sort", label: "Sort", options: SORTS });
  }

  async detail(row) {
    const found = await ask(`${this.base}/sample?pos=${row.pos}`);
    return [{ row: found.row, detail: found.detail }];
  }
  async find(cell, idx, repeat) {
    try { return (await ask(`${this.base}/sample?cell=${cell}&idx=${idx}&repeat=${repeat}`)).row; } catch { return null; }
  }
  render(row) { return sampleRow(row, this.cells.length > 1 ? this.cells[row.cell] : ""); }
  title(row) { return `${this.cells[row.cell]} · ${row.id}`; }
}

class PairSource extends RemoteSource {
  constructor(setup) {
    super(`/api/compare/${setup.first}/${setup.second}`, [
      { name: "change", label: "All changes", options: [["worse", "Worse in B"], ["better", "Better in B"], ["same", "The same"], ["unmeasured", "Not scored in both"]] },
      { name: "standing", label: "A right and wrong", options: STANDINGS },
      { name: "sort", label: "Sort", options: SORTS },
    ], { cell: setup.cells[0], other: setup.cells[1] });
    this.names = setup.names;
  }

  async detail(row) {
    const both = await ask(`${this.base}/sample?pos=${row.pos}&other=${row.other}`);
    return both.map((side, number) => ({ title: `${"AB"[number]} · ${this.names[number]}`, ...side }));
  }
  render(row) {
    const [a, b] = [row.value, row.other_value];
    const change = a === null || b === null ? "unscored" : a > b ? "worse" : a < b ? "better" : "same";
    const cells = sampleRow(row, "");
    cells[0] = el("span", { class: `mark-dot ${change}`, title: change });
    return [...cells.slice(0, 3), el("span", { class: "num score" }, `${show.score(a)} → ${show.score(b)}`), ...cells.slice(4)];
  }
  title(row) { return row.id; }
}

async function runPage(run) {
  let state = await ask(`/api/run/${run}`);
  const source = new RunSource(run, state);
  const browser = new SampleBrowser(source);
  const progress = document.getElementById("progress");
  document.getElementById("against")?.addEventListener("change", (event) => {
    if (event.target.value) location.href = `/compare/${run}/${event.target.value}`;
  });

  function showProgress() {
    progress.hidden = state.stage !== "running";
    progress.textContent = `${show.count(state.done)} of ${show.count(state.planned)}`;
    document.getElementById("samples-count").textContent = show.count(state.done);
  }

  async function follow() {
    if (state.stage !== "running") return;
    try {
      const now = await ask(`/api/run/${run}`);
      if (now.version !== state.version) {
        const part = await fetch(`/run/${run}/overview`);
        if (part.ok) document.getElementById("overview").innerHTML = await part.text();
        state = now;
        source.cells = now.cells.map((cell) => cell.name);
        browser.setFilters(RunSource.filtersOf(now));
        showProgress();
        await browser.refresh(true);
      }
    } catch { /* the viewer may be away for a moment: ask again */ }
    setTimeout(follow, 1500);
  }

  showProgress();
  await setUpTabs(browser, (...place) => source.find(...place));
  await browser.refresh();
  document.documentElement.dataset.ready = "yes";
  setTimeout(follow, 1000);
}

async function comparePage() {
  const browser = new SampleBrowser(new PairSource(JSON.parse(document.getElementById("setup").textContent)));
  document.getElementById("choice")?.addEventListener("change", (event) => { location.search = event.target.value; });
  for (const tile of document.querySelectorAll("button.tile")) {
    tile.addEventListener("click", () => browser.choose("change", tile.dataset.change));
  }
  await browser.refresh();
  document.documentElement.dataset.ready = "yes";
}

function runsPage() {
  const table = document.getElementById("runs");
  const button = document.getElementById("compare");
  const find = document.getElementById("find");
  let chosen = [];

  function narrow() {
    const wanted = find.value.trim().toLowerCase();
    for (const row of table.rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  }
  function mark() {
    for (const box of table.querySelectorAll("input")) box.checked = chosen.includes(box.value);
    button.disabled = chosen.length !== 2;
  }
  table.addEventListener("change", (event) => {
    chosen = chosen.filter((run) => run !== event.target.value);
    if (event.target.checked) chosen = [...chosen, event.target.value].slice(-2);
    mark();
  });
  button.addEventListener("click", () => { location.href = `/compare/${chosen[0]}/${chosen[1]}`; });
  find.addEventListener("input", narrow);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && event.target !== find) { find.focus(); event.preventDefault(); }
  });

  async function follow() {
    try {
      const now = await ask("/api/runs");
      if (now.rows !== table.dataset.rows) {
        table.dataset.rows = now.rows;
        table.innerHTML = now.rows;
        chosen = chosen.filter((run) => table.querySelector(`[data-run="${run}"]`));
        mark();
        narrow();
      }
      setTimeout(follow, now.running ? 2000 : 8000);
    } catch { setTimeout(follow, 8000); }
  }
  setTimeout(follow, 2000);
  document.documentElement.dataset.ready = "yes";
}

setUpTheme();
const page = document.body.dataset.page;
if (page === "runs") runsPage();
else if (page === "run") runPage(document.body.dataset.run);
else if (page === "compare") comparePage();
