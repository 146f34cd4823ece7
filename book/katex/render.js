// Reads lines of JSON [tex, displayMode] and answers each with a line {html} or {error}.
const katex = require("./katex.min.js");

require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const [tex, displayMode] = JSON.parse(line);
  let answer;
  try {
    answer = { html: katex.renderToString(tex, { displayMode, strict: false }) };
  } catch ({ message }) {
    answer = { error: message };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
});
