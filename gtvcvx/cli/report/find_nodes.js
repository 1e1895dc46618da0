/**
 * The search box of the report: hides the rows and names of nodes that do not hold what is typed,
 * and opens the lists that have some that do. Without scripts, all of them can be opened by hand.
 */
(function () {
  "use strict";

  const box = document.getElementById("find");
  const rows = [...document.querySelectorAll("#node-rows tbody tr")];
  const names = [...document.querySelectorAll(".names li")];
  const lists = [...document.querySelectorAll("#coefficients details")];
  const open = lists.map((list) => list.open);
  const textOf = (item) => (item.cells ? item.cells[0] : item).textContent.toLowerCase();
  const texts = new Map([...rows, ...names].map((item) => [item, textOf(item)]));

  /** Show what holds the text; return how many do. */
  function kept(items, text) {
    let count = 0;
    for (const item of items) {
      item.hidden = !texts.get(item).includes(text);
      count += !item.hidden;
    }
    return count;
  }

  function find() {
    const text = box.value.trim().toLowerCase();
    const answer = `${kept(rows, text)} in the table, ${kept(names, text)} in the lists`;
    lists.forEach((list, k) => {
      const some = list.querySelector("tbody tr:not([hidden]), li:not([hidden])") !== null;
      list.open = text === "" ? open[k] : some;
      list.hidden = !some;
    });
    document.getElementById("found").textContent = text === "" ? "" : answer;
  }

  let waiting = 0;
  box.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(find, 150); // once the typing pauses
  });
  document.getElementById("find-tools").hidden = false;
})();
