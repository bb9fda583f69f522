"use strict";
(() => {
  const root = document.documentElement;
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const makeButton = (text, className) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    if (className) button.className = className;
    return button;
  };

  // theme: the system's, until the button is pressed
  const themeButton = document.getElementById("theme");
  themeButton.hidden = false;
  themeButton.addEventListener("click", () => {
    const isDark = getComputedStyle(root).colorScheme === "dark"
      || (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
    root.dataset.theme = isDark ? "light" : "dark";
  });

  // fixes: one dialect for the whole page, and a button to copy the code
  const chooseDialect = (dialect) => {
    root.dataset.dialect = dialect;
    for (const button of all(".dialects [data-dialect-name]")) {
      button.setAttribute("aria-pressed", String(button.dataset.dialectName === dialect));
    }
  };
  const copyText = async (text) => {
    try { await navigator.clipboard.writeText(text); return true; } catch { /* use execCommand */ }
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    return isCopied;
  };
  const makeDialectBar = (codes) => {
    const bar = document.createElement("div");
    bar.className = "dialects";
    bar.setAttribute("role", "group");
    bar.setAttribute("aria-label", "Write the fix as");
    for (const code of codes) {
      const button = makeButton(code.dataset.d);
      button.dataset.dialectName = code.dataset.d;
      button.setAttribute("aria-pressed", String(code.dataset.d === root.dataset.dialect));
      button.addEventListener("click", () => chooseDialect(code.dataset.d));
      bar.append(button);
    }
    return bar;
  };
  const addFixButtons = (fix) => {
    const codes = all("pre[data-d]", fix);
    if (!codes.length || fix.querySelector(".dialects")) return;
    const bar = makeDialectBar(fix.closest(".card") ? [] : codes);
    const copyButton = makeButton("Copy", "copy");
    copyButton.addEventListener("click", async () => {
      const code = codes.find((each) => each.dataset.d === root.dataset.dialect) || codes[0];
      const isCopied = await copyText(code.querySelector("code").textContent);
      copyButton.textContent = isCopied ? "Copied" : "Select the text to copy it";
      setTimeout(() => { copyButton.textContent = "Copy"; }, 2000);
    });
    bar.append(copyButton);
    codes[0].before(bar);
  };
  root.dataset.dialect = "sdk-v3";
  const cards = document.querySelector(".cards");
  const firstCode = cards && cards.querySelector(".fix pre");
  if (firstCode) cards.before(makeDialectBar(all("pre", firstCode.parentElement)));
  for (const fix of all(".fix")) if (!fix.closest("details.job")) addFixButtons(fix);
  for (const job of all("details.job")) {
    job.addEventListener("toggle", () => { for (const fix of all(".fix", job)) addFixButtons(fix); });
  }

  // a link to a job's section opens it
  const openLinkedJob = () => {
    const job = location.hash.startsWith("#j") && document.getElementById(location.hash.slice(1));
    if (job && job.matches("details.job")) {
      job.open = true;
      job.scrollIntoView();
      job.querySelector("summary").focus({ preventScroll: true });
    }
  };
  addEventListener("hashchange", openLinkedJob);
  openLinkedJob();

  const table = document.getElementById("all");
  if (!table) return;
  const [shownBody, hiddenBody] = table.tBodies;
  const rows = [...shownBody.rows, ...hiddenBody.rows];
  const heads = [...table.tHead.rows[0].cells];
  const FIRST_ROWS = shownBody.rows.length;
  const MORE_ROWS = 500;
  let maxRows = FIRST_ROWS;
  let matching = rows;

  const numberOf = (cell) => {
    if (cell.dataset.u) return Number(cell.dataset.u) / 1e6;
    const match = /^[^\d]*([\d,]+(?:\.\d+)?)/.exec(cell.textContent);
    return match ? Number(match[1].replaceAll(",", "")) : Number.NaN;
  };
  const rowTexts = new Map();
  const rowText = (row) => {
    if (!rowTexts.has(row)) rowTexts.set(row, row.textContent.toLowerCase());
    return rowTexts.get(row);
  };

  // hidden rows are in a part of the table that has no layout
  const moreButton = makeButton("", "more");
  moreButton.addEventListener("click", () => { maxRows += MORE_ROWS; showRows(); });
  table.parentElement.after(moreButton);
  const jobCount = document.getElementById("job-count");
  const labelMoreButton = () => {
    const left = matching.length - maxRows;
    moreButton.hidden = left <= 0;
    moreButton.textContent = `Show ${Math.min(MORE_ROWS, left)} more jobs (${left.toLocaleString("en")} are not shown)`;
  };
  const showRows = () => {
    const shown = matching.slice(0, maxRows);
    const shownSet = new Set(shown);
    shownBody.replaceChildren(...shown);
    hiddenBody.replaceChildren(...rows.filter((row) => !shownSet.has(row)));
    labelMoreButton();
  };
  const isRollup = (row) => "r" in row.dataset;
  const rollupTotal = rows.filter(isRollup).length;
  // as in the page's own sums: l is a lower bound, u an upper bound, e an estimate
  const spendText = () => {
    const cells = matching.map((row) => row.cells[1].dataset);
    const doubts = new Set(cells.flatMap((cell) => [...(cell.q || "")]));
    const [isLower, isUpper] = [doubts.has("l"), doubts.has("u")];
    if (isLower && !cells.some((cell) => cell.u)) return "unknown";
    let micros = 0;
    for (const cell of cells) micros += Number(cell.u || 0);
    const usd = (micros / 1e6).toLocaleString("en", { style: "currency", currency: "USD" });
    const text = micros && (doubts.has("e") || (isLower && isUpper)) ? `about ${usd}` : usd;
    if (isLower === isUpper) return text;
    return isLower ? `${text} or more` : `up to ${text}`;
  };
  const showCount = () => {
    const rollups = matching.filter(isRollup).length;
    const jobTotal = rows.length - rollupTotal;
    const ofTotal = matching.length === rows.length ? "" : ` of ${jobTotal.toLocaleString("en")}`;
    const countText = (count, word, suffix = "") => `${count.toLocaleString("en")}${suffix} ${word}${count === 1 && !suffix ? "" : "s"}`;
    const rollupText = rollups ? ` and ${countText(rollups, "tuning job")}` : "";
    jobCount.textContent = `${countText(matching.length - rollups, "job", ofTotal)}${rollupText}, spend ${spendText()}`;
  };

  // columns: some are shown from the start, the others if they are chosen
  const sheet = document.styleSheets[0];
  const hiddenColumns = new Set([...heads.keys()].filter((index) => "more" in heads[index].dataset));
  sheet.insertRule("#none { display: none; }", sheet.cssRules.length);
  const hideColumns = () => {
    const cells = [...hiddenColumns].map((index) => `#all tr > :nth-child(${index + 1})`);
    sheet.cssRules[sheet.cssRules.length - 1].selectorText = cells.join(", ") || "#none";
  };
  const choices = document.createElement("details");
  choices.className = "choose";
  choices.append(document.createElement("summary"), document.createElement("fieldset"));
  choices.firstChild.textContent = "Columns";
  choices.lastChild.setAttribute("aria-label", "Columns of the table");
  heads.forEach((head, index) => {
    if (!index) return;
    const choice = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = !hiddenColumns.has(index);
    box.addEventListener("change", () => {
      hiddenColumns[box.checked ? "delete" : "add"](index);
      hideColumns();
    });
    choice.append(box, head.textContent);
    choices.lastChild.append(choice);
  });
  table.parentElement.before(choices);
  hideColumns();

  const titles = heads.map((head) => head.textContent);
  const columnIndex = (title) => titles.indexOf(title);
  const form = document.getElementById("filters");
  const searchField = document.getElementById("find");
  const selects = all("select", form);
  let nameFilter = null;
  const chip = makeButton("", "chip");
  chip.hidden = true;
  form.querySelector(".filters").append(chip);
  const setNameFilter = (pick) => {
    nameFilter = pick && { index: columnIndex(pick.dataset.c), name: pick.textContent };
    chip.hidden = !nameFilter;
    if (nameFilter) {
      chip.textContent = `${heads[nameFilter.index].textContent}: ${nameFilter.name} \u00d7`;
      chip.setAttribute("aria-label", `Show all again, not only ${nameFilter.name}`);
    }
  };
  chip.addEventListener("click", () => { setNameFilter(null); filterRows(); searchField.focus(); });
  const hasName = (row) => row.cells[nameFilter.index].textContent.split(", ").includes(nameFilter.name)
    || row.cells[nameFilter.index].textContent === nameFilter.name;
  const filterRows = () => {
    const words = searchField.value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = selects.filter((select) => select.value);
    matching = rows.filter((row) => words.every((word) => rowText(row).includes(word))
      && chosen.every((select) => row.cells[columnIndex(select.dataset.column)].textContent === select.value)
      && (!nameFilter || hasName(row)));
    showRows();
    showCount();
  };
  let timer = 0;
  searchField.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(filterRows, 80); });
  for (const select of selects) select.addEventListener("change", filterRows);
  form.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("clear").addEventListener("click", () => {
    form.reset();
    setNameFilter(null);
    maxRows = FIRST_ROWS;
    filterRows();
    searchField.focus();
  });
  for (const pick of all(".pick")) {
    pick.setAttribute("role", "button");
    pick.tabIndex = 0;
    pick.title = "Show its jobs";
    const showJobs = () => {
      form.reset();
      setNameFilter(pick);
      filterRows();
      document.getElementById("jobs").scrollIntoView();
      searchField.focus({ preventScroll: true });
    };
    pick.addEventListener("click", showJobs);
    pick.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); showJobs(); }
    });
  }
  form.hidden = false;

  const collator = new Intl.Collator("en", { numeric: true });
  const sortRows = (index) => {
    const head = heads[index];
    const isNumber = head.classList.contains("n");
    const oldOrder = head.getAttribute("aria-sort");
    const isDescending = oldOrder ? oldOrder === "ascending" : isNumber;
    for (const each of heads) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", isDescending ? "descending" : "ascending");
    const sign = isDescending ? -1 : 1;
    const keyed = rows.map((row, position) => {
      const cell = row.cells[index];
      return [row, isNumber ? numberOf(cell) : cell.textContent, position];
    });
    keyed.sort(([, left, leftPosition], [, right, rightPosition]) => {
      const byPosition = leftPosition - rightPosition;
      if (isNumber) {
        // unknown amounts come last in both orders
        if (Number.isNaN(left) || Number.isNaN(right)) return Number.isNaN(left) - Number.isNaN(right) || byPosition;
        return sign * (left - right) || byPosition;
      }
      return sign * collator.compare(left, right) || byPosition;
    });
    rows.splice(0, rows.length, ...keyed.map(([row]) => row));
    filterRows();
  };
  heads.forEach((head, index) => {
    const sortButton = makeButton(head.textContent);
    sortButton.addEventListener("click", () => sortRows(index));
    head.replaceChildren(sortButton);
  });
  labelMoreButton();
  showCount();
  root.dataset.ready = "yes";
})();
