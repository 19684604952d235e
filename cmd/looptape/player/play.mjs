// Plays an asciicast in the core and the terminal of asciinema-player, without a page,
// to its end, and prints as JSON what it shows: rows, cursor, the sizes on the way, and
// the markers. Arguments: the directory that the package is installed in, and the file.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const dist = join(process.argv[2], 'node_modules', 'asciinema-player', 'dist');
const find = prefix => readdirSync(dist).find(name => name.startsWith(prefix) && name.endsWith('.js'));
const load = name => import(pathToFileURL(join(dist, name)));
const { C: Core } = await load(find('core-'));
// The package keeps its terminal to its user interface, which asks for a page when it
// is loaded.
globalThis.window = { document: { addEventListener() {} } };
writeFileSync(join(dist, 'terminal.js'), readFileSync(join(dist, find('opts-')), 'utf8') + '\nexport { Vt as Terminal };\n');
const { Terminal, c: options } = await load('terminal.js');

const logger = { debug() {}, info() {}, warn() {}, error: console.error };
const core = new Core({ data: readFileSync(process.argv[3], 'utf8') }, options({ preload: true }, { logger }));
const vt = await Terminal.build(80, 24, false, logger);
const sizes = [];
core.addEventListener('reset', ({ size, init }) => {
  vt.reset(size.cols, size.rows, init);
  sizes.push(`${size.cols}x${size.rows}`);
});
core.addEventListener('resize', size => {
  vt.resize(size.cols, size.rows);
  sizes.push(`${size.cols}x${size.rows}`);
});
core.addEventListener('output', data => [data].flat().forEach(text => vt.feed(text)));
core.terminalReady();
await core.init();
await core.seek(await core.getDuration());

// row reads a row as the package's renderer does. What no span and no symbol covers is
// the second half of a wide character.
function row(n) {
  const line = vt.getLine(n, false);
  const cells = Array(vt.cols).fill('');
  const codepoints = vt.getUint32Array(line.codepoints);
  const text = vt.getDataView(line.text, 12);
  for (let i = 0; i < text.byteLength; i += 12) {
    const column = text.getUint16(i, true), start = text.getUint16(i + 2, true), length = text.getUint16(i + 4, true);
    for (let k = 0; k < length; k++) cells[column + k] = String.fromCodePoint(codepoints[start + k]);
  }
  for (const [symbols, size] of [[line.raster_symbols, 12], [line.vector_symbols, 16]]) {
    const view = vt.getDataView(symbols, size);
    for (let i = 0; i < view.byteLength; i += size) cells[view.getUint16(i, true)] = String.fromCodePoint(view.getUint32(i + 4, true));
  }
  return cells.join('');
}
const { col, row: at } = vt.getCursor();
console.log(JSON.stringify({ rows: Array.from({ length: vt.rows }, (_, n) => row(n)), cursor: [col, at], sizes }));
process.exit(0);
