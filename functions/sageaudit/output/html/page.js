"use strict";
(() => {
  const root = document.documentElement;
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const button = (text, kind) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };

  // theme: as the system has it, until the button is pressed
  const theme = document.getElementById("theme");
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const dark = getComputedStyle(root).colorScheme === "dark"
      || (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
    root.dataset.theme = dark ? "light" : "dark";
  });

  // fixes: one dialect at a time, chosen once for the whole page, and a button to copy
  const choose = (dialect) => {
    root.dataset.dialect = dialect;
    for (const one of all(".says [data-says]")) one.setAttribute("aria-pressed", String(one.dataset.says === dialect));
  };
  const copied = async (text) => {
    try { await navigator.clipboard.writeText(text); return true; } catch { /* the older way below */ }
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  };
  const barOf = (codes) => {
    const bar = document.createElement("div");
    bar.className = "says";
    bar.setAttribute("role", "group");
    bar.setAttribute("aria-label", "Write the fix as");
    for (const code of codes) {
      const one = button(code.dataset.d);
      one.dataset.says = code.dataset.d;
      one.setAttribute("aria-pressed", String(code.dataset.d === root.dataset.dialect));
      one.addEventListener("click", () => choose(code.dataset.d));
      bar.append(one);
    }
    return bar;
  };
  const dress = (fix) => {
    const codes = all("pre[data-d]", fix);
    if (!codes.length || fix.querySelector(".says")) return;
    const bar = barOf(fix.closest(".card") ? [] : codes);
    const copy = button("Copy", "copy");
    copy.addEventListener("click", async () => {
      const code = codes.find((one) => one.dataset.d === root.dataset.dialect) || codes[0];
      copy.textContent = await copied(code.querySelector("code").textContent) ? "Copied" : "Select the text to copy it";
      setTimeout(() => { copy.textContent = "Copy"; }, 2000);
    });
    bar.append(copy);
    codes[0].before(bar);
  };
  root.dataset.dialect = "sdk-v3";
  const cards = document.querySelector(".cards");
  const first = cards && cards.querySelector(".fix pre");
  if (first) cards.before(barOf(all("pre", first.parentElement)));
  for (const fix of all(".fix")) if (!fix.closest("details.job")) dress(fix);
  for (const job of all("details.job")) {
    job.addEventListener("toggle", () => { for (const fix of all(".fix", job)) dress(fix); });
  }

  // a link to a job's section opens it
  const open = () => {
    const job = location.hash.startsWith("#j") && document.getElementById(location.hash.slice(1));
    if (job && job.matches("details.job")) {
      job.open = true;
      job.scrollIntoView();
      job.querySelector("summary").focus({ preventScroll: true });
    }
  };
  addEventListener("hashchange", open);
  open();

  const table = document.getElementById("all");
  if (!table) return;
  const [body, rest] = table.tBodies;
  const rows = [...body.rows, ...rest.rows];
  const heads = [...table.tHead.rows[0].cells];
  const FIRST = body.rows.length;
  const MORE = 500;
  let most = FIRST;
  let matching = rows;

  const dollars = (cell) => {
    if (cell.dataset.u) return Number(cell.dataset.u) / 1e6;
    const found = /^[^\d]*([\d,]+(?:\.\d+)?)/.exec(cell.textContent);
    return found ? Number(found[1].replaceAll(",", "")) : Number.NaN;
  };
  const texts = new Map();
  const text = (row) => {
    if (!texts.has(row)) texts.set(row, row.textContent.toLowerCase());
    return texts.get(row);
  };

  // rows that are not shown stay in a part of the table that is not laid out
  const more = button("", "more");
  more.addEventListener("click", () => { most += MORE; show(); });
  table.parentElement.after(more);
  const found = document.getElementById("found");
  const label = () => {
    const left = matching.length - most;
    more.hidden = left <= 0;
    more.textContent = `Show ${Math.min(MORE, left)} more jobs (${left.toLocaleString("en")} are not shown)`;
  };
  const show = () => {
    const shown = matching.slice(0, most);
    const kept = new Set(shown);
    body.replaceChildren(...shown);
    rest.replaceChildren(...rows.filter((row) => !kept.has(row)));
    label();
  };
  const every = rows.filter((row) => "r" in row.dataset).length;
  // the words of the page's own sums: l is a lower bound, u an upper one, e an estimate
  const spend = () => {
    const cells = matching.map((row) => row.cells[1].dataset);
    const doubts = new Set(cells.flatMap((cell) => [...(cell.q || "")]));
    const [lower, upper] = [doubts.has("l"), doubts.has("u")];
    if (lower && !cells.some((cell) => cell.u)) return "unknown";
    let sum = 0;
    for (const cell of cells) sum += Number(cell.u || 0);
    const usd = (sum / 1e6).toLocaleString("en", { style: "currency", currency: "USD" });
    const shown = sum && (doubts.has("e") || (lower && upper)) ? `about ${usd}` : usd;
    if (lower === upper) return shown;
    return lower ? `${shown} or more` : `up to ${shown}`;
  };
  const say = () => {
    const rollups = matching.filter((row) => "r" in row.dataset).length;
    const of = matching.length === rows.length ? "" : ` of ${(rows.length - every).toLocaleString("en")}`;
    const words = (count, word, part = "") => `${count.toLocaleString("en")}${part} ${word}${count === 1 && !part ? "" : "s"}`;
    const more = rollups ? ` and ${words(rollups, "tuning job")}` : "";
    found.textContent = `${words(matching.length - rollups, "job", of)}${more}, spend ${spend()}`;
  };

  // columns: some to begin with, the others when they are chosen
  const sheet = document.styleSheets[0];
  const hidden = new Set([...heads.keys()].filter((at) => "more" in heads[at].dataset));
  sheet.insertRule("#none { display: none; }", sheet.cssRules.length);
  const hide = () => {
    const cells = [...hidden].map((at) => `#all tr > :nth-child(${at + 1})`);
    sheet.cssRules[sheet.cssRules.length - 1].selectorText = cells.join(", ") || "#none";
  };
  const choices = document.createElement("details");
  choices.className = "choose";
  choices.append(document.createElement("summary"), document.createElement("fieldset"));
  choices.firstChild.textContent = "Columns";
  choices.lastChild.setAttribute("aria-label", "Columns of the table");
  heads.forEach((head, at) => {
    if (!at) return;
    const choice = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = !hidden.has(at);
    box.addEventListener("change", () => { hidden[box.checked ? "delete" : "add"](at); hide(); });
    choice.append(box, head.textContent);
    choices.lastChild.append(choice);
  });
  table.parentElement.before(choices);
  hide();

  const titles = heads.map((head) => head.textContent);
  const place = (title) => titles.indexOf(title);
  const form = document.getElementById("filters");
  const find = document.getElementById("find");
  const picks = all("select", form);
  let only = null;
  const chip = button("", "chip");
  chip.hidden = true;
  form.querySelector(".filters").append(chip);
  const choosing = (pick) => {
    only = pick && { at: place(pick.dataset.c), name: pick.textContent };
    chip.hidden = !only;
    if (only) {
      chip.textContent = `${heads[only.at].textContent}: ${only.name} \u00d7`;
      chip.setAttribute("aria-label", `Show all again, not only ${only.name}`);
    }
  };
  chip.addEventListener("click", () => { choosing(null); filter(); find.focus(); });
  const has = (row) => row.cells[only.at].textContent.split(", ").includes(only.name)
    || row.cells[only.at].textContent === only.name;
  const filter = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = picks.filter((pick) => pick.value);
    matching = rows.filter((row) => words.every((word) => text(row).includes(word))
      && chosen.every((pick) => row.cells[place(pick.dataset.column)].textContent === pick.value)
      && (!only || has(row)));
    show();
    say();
  };
  let waiting = 0;
  find.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 80); });
  for (const pick of picks) pick.addEventListener("change", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("clear").addEventListener("click", () => { form.reset(); choosing(null); most = FIRST; filter(); find.focus(); });
  for (const pick of all(".pick")) {
    pick.setAttribute("role", "button");
    pick.tabIndex = 0;
    pick.title = "Show its jobs";
    const go = () => {
      form.reset();
      choosing(pick);
      filter();
      document.getElementById("jobs").scrollIntoView();
      find.focus({ preventScroll: true });
    };
    pick.addEventListener("click", go);
    pick.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); go(); }
    });
  }
  form.hidden = false;

  const collator = new Intl.Collator("en", { numeric: true });
  const sort = (at) => {
    const head = heads[at];
    const number = head.classList.contains("n");
    const now = head.getAttribute("aria-sort");
    const down = now ? now === "ascending" : number;
    for (const one of heads) one.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const sign = down ? -1 : 1;
    const keyed = rows.map((row, place) => {
      const cell = row.cells[at];
      return [row, number ? dollars(cell) : cell.textContent, place];
    });
    keyed.sort(([, one, a], [, two, b]) => {
      if (number) {
        // what is not known comes last, either way
        if (Number.isNaN(one) || Number.isNaN(two)) return Number.isNaN(one) - Number.isNaN(two) || a - b;
        return sign * (one - two) || a - b;
      }
      return sign * collator.compare(one, two) || a - b;
    });
    rows.splice(0, rows.length, ...keyed.map(([row]) => row));
    filter();
  };
  heads.forEach((head, at) => {
    const press = button(head.textContent);
    press.addEventListener("click", () => sort(at));
    head.replaceChildren(press);
  });
  label();
  say();
  root.dataset.ready = "yes";
})();
