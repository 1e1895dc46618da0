/**
 * The button of the report that checks its proof: reads the certificate in the page, asks
 * `gtvChecker` (verify/web/checker.js, in the page, too), and shows what is proved. No network.
 */
(function () {
  "use strict";

  const LOOKS = { CERTIFIED: "proved", REFUTED: "refuted", UNPROVED: "unproved" };
  const place = (id) => document.getElementById(id);

  function element(name, text, className) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  /** The box with the verdict, as the report's own. */
  function verdict(word, text) {
    const box = element("p", undefined, `verdict ${LOOKS[word] ?? "refuted"}`);
    box.append(element("strong", word), element("br"), text);
    return box;
  }

  function facts(rows) {
    const table = element("table", undefined, "facts");
    for (const [name, text] of rows) {
      const row = element("tr");
      const heading = element("th", name);
      heading.scope = "row";
      row.append(heading, element("td", text));
      table.append(row);
    }
    const frame = element("div", undefined, "wide");
    frame.append(table);
    return frame;
  }

  /** What was found out, in words: for whom it is written nothing else is needed. */
  function rowsOf(answer, rtol, seconds) {
    const { gap, rel_gap, plain_gap, upper, lower, distance_bound, warning } =
      gtvChecker.figures(answer);
    const rows = [];
    const row = (name, value, text) => {
      if (value !== null) rows.push([name, text]);
    };
    row("Proved", gap, `No parameters have an objective that is lower by more than ${gap}.`);
    row("Relative gap", rel_gap, `at most ${rel_gap}, which is gap / max(1, |objective|)`);
    row("Gap / |objective|", plain_gap, `at most ${plain_gap}`);
    row("Objective of this solution", upper, `at most ${upper}`);
    row("Lower bound on the optimum", lower, String(lower));
    row("Distance to the optimal parameters", distance_bound, `at most ${distance_bound}`);
    rows.push([
      "Tolerance",
      `${rtol}, which is yours: what the certificate asks for decides nothing`,
    ]);
    row("Problem", upper, `the one whose data have the SHA-256 ${answer.sha256}`);
    if (warning) rows.push(["Warning", warning]);
    rows.push(["Time", `${seconds.toFixed(2)} s, in exact arithmetic`]);
    return rows;
  }

  function show(...parts) {
    place("proof-answer").replaceChildren(...parts);
  }

  function checked() {
    const typed = place("proof-rtol").value.trim();
    const rtol = Number(typed);
    if (typed === "" || !(rtol >= 0 && rtol < Infinity)) {
      show(element("p", "The tolerance must be a number that is not negative.", "note"));
      return;
    }
    try {
      const start = performance.now();
      const answer = gtvChecker.check(place("proof-certificate").textContent, { rtol });
      const seconds = (performance.now() - start) / 1000;
      show(
        element("h3", "What this browser found"),
        verdict(answer.status, answer.reason),
        facts(rowsOf(answer, typed, seconds)),
      );
    } catch (error) {
      show(
        verdict("ERROR", `The checker has broken, which says nothing about the proof: ${error}`),
      );
    }
  }

  function pressed() {
    show(element("p", "Checking ...", "note"));
    setTimeout(checked, 20); // once the line is on the screen
  }

  /** The certificate as a file, for another checker. */
  function saved() {
    const text = place("proof-certificate").textContent;
    const link = element("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = "certificate.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  place("proof-check").addEventListener("click", pressed);
  place("proof-save").addEventListener("click", saved);
  place("proof-tools").hidden = false;
  if (location.hash === "#check") place("proof-check").click();
})();
