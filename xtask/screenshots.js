// Judges the report in a page: WIDTH and DARK stand for how it should be shown, FIRST for how many columns of the table have
// to be on screen at the width of a tablet. Writes what is wrong into the window, whether the page is in a frame or not.
const table = document.querySelector("table"), scroller = table.parentElement, wrong = [];
const right = element => element.getBoundingClientRect().right;
const check = (fine, text) => fine || wrong.push(text);
const channels = getComputedStyle(document.body).backgroundColor.match(/[\d.]+/g).slice(0, 3).map(Number);
check(Math.abs(innerWidth - WIDTH) < 1, `the window is ${innerWidth} px wide`);
check(matchMedia("(prefers-color-scheme: dark)").matches === DARK, "the page has the wrong scheme");
check((Math.max(...channels) < 128) === DARK, `the page is ${channels}`);
const wide = [...document.querySelectorAll("main *")].filter(it => !it.closest(".scroll") && right(it) > innerWidth + 1);
check(document.documentElement.scrollWidth <= innerWidth,
  `the page is ${document.documentElement.scrollWidth} px wide: ${wide.map(it => it.outerHTML.slice(0, 60)).join("; ")}`);
const columns = [...table.querySelectorAll("thead th")].slice(0, FIRST);
check(columns.length === FIRST, `the table has ${columns.length} columns`);
check(WIDTH < 800 || columns.every(it => right(it) <= innerWidth), `the first columns end at ${columns.map(right)} px`);
const head = table.querySelector("tbody th"), before = head.getBoundingClientRect().left;
scroller.scrollLeft = 200;
check(Math.abs(head.getBoundingClientRect().left - before) < 2, "the first column leaves when the table is scrolled");
scroller.scrollLeft = 0;
let texts = 0;
for (const picture of document.querySelectorAll("svg.chart")) {
  const frame = picture.getBoundingClientRect(), boxes = [];
  for (const text of picture.querySelectorAll("text")) {
    const box = text.getBoundingClientRect(), words = text.textContent;
    texts += 1;
    check(box.left >= frame.left - 1 && box.right <= frame.right + 1 && box.top >= frame.top - 1
      && box.bottom <= frame.bottom + 1, `a text is outside: ${words}`);
    // The boxes of lines are higher than their letters.
    const slack = box.height * .2;
    for (const other of boxes) {
      const across = Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left);
      const down = Math.min(box.bottom, other.box.bottom) - Math.max(box.top, other.box.top);
      check(across <= 1 || down <= slack, `texts meet: ${other.words} / ${words}`);
    }
    boxes.push({ box, words });
  }
}
check(texts > 50, `the pictures have ${texts} texts`);
top.document.getElementById("findings").textContent = JSON.stringify(wrong);
