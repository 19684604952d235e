// Runs cases through xterm.js: one JSON object a line on standard input, in
// the form of testdata/*.jsonl, and for each the same object on standard
// output with `screen`, `cursor` and `history` as xterm.js has them.
//
// Usage: node screen.mjs FOLDER < cases.jsonl > results.jsonl
// FOLDER holds node_modules with @xterm/headless at the version of package.json.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { join, resolve } from "node:path";

const require = createRequire(join(resolve(process.argv[2]), "package.json"));
const { Terminal } = require("@xterm/headless");
const { Unicode11Addon } = require("@xterm/addon-unicode11");

// Rows [from, to) of a buffer, trailing blanks trimmed.
function rows(buffer, from, to) {
  const out = [];
  for (let y = from; y < to; y++) {
    const line = buffer.getLine(y);
    out.push(line ? line.translateToString(true).replace(/ +$/, "") : "");
  }
  return out;
}

// xterm.js parses from a timer, so that an exception of its parser is nobody's
// but the process's. It ends the case, not the run.
let fail = () => {};
process.on("uncaughtException", (e) => fail(e));

async function run(test) {
  const term = new Terminal({
    cols: test.cols,
    rows: test.rows,
    scrollback: 10000,
    allowProposedApi: true,
    logLevel: "off",
  });
  // Without this, emoji are one column wide.
  term.loadAddon(new Unicode11Addon());
  term.unicode.activeVersion = "11";
  for (const step of test.steps) {
    if (step.resize) {
      term.resize(step.resize[0], step.resize[1]);
    } else if (step.in) {
      await new Promise((done, failed) => {
        fail = failed;
        term.write(Buffer.from(step.in, "base64"), done);
      });
    }
  }
  const { active, normal } = term.buffer;
  const result = {
    ...test,
    screen: rows(active, active.baseY, active.baseY + term.rows),
    cursor: [Math.min(active.cursorX, term.cols - 1), active.cursorY],
    history: rows(normal, 0, normal.baseY),
  };
  term.dispose();
  return result;
}

for await (const line of createInterface({ input: process.stdin })) {
  if (!line) continue;
  const test = JSON.parse(line);
  let result;
  try {
    result = await run(test);
  } catch (e) {
    // A crash of xterm.js is no expectation.
    result = { name: test.name, group: test.group, failed: String(e) };
  }
  if (!process.stdout.write(JSON.stringify(result) + "\n")) {
    await new Promise((drained) => process.stdout.once("drain", drained));
  }
}
