// Opens a file in speedscope, in Chromium, and prints what its table of functions shows of each profile, as JSON:
// {"profiles": [[[function, own share in percent, as it is shown], …], …], "errors": […]}
//
//     SPEEDSCOPE=…/node_modules/speedscope node speedscope.mjs FILE
//
// The modules of tests/page drive the browser (npm ci --prefix tests/page).

import fs from "node:fs";
import http from "node:http";
import path from "node:path";

import { launch } from "../page/chromium.mjs";

const PATIENCE = { timeout: 600_000 };
const viewer = path.join(process.env.SPEEDSCOPE, "dist/release");
const [file] = process.argv.slice(2);
const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm" };

const server = http.createServer((request, response) => {
  const name = request.url.split("?")[0];
  const asked = name === "/profile" ? file : path.join(viewer, name === "/" ? "index.html" : name);
  if (!fs.existsSync(asked)) {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, { "content-type": types[path.extname(asked)] ?? "application/octet-stream" });
  fs.createReadStream(asked).pipe(response);
});
await new Promise((listens) => server.listen(0, "127.0.0.1", listens));
const here = `http://127.0.0.1:${server.address().port}`;

const browser = await launch();
const page = await browser.newPage();
const errors = [];
page.on("pageerror", (error) => errors.push(String(error)));
await page.goto(`${here}/#profileURL=${here}/profile`);
await page.waitForFunction(() => document.body.innerText.includes("Sandwich") && document.title !== "speedscope", null, PATIENCE);

const profiles = [];
const count = JSON.parse(fs.readFileSync(file)).profiles.length;
for (let number = 0; number < count; number++) {
  if (number > 0) {
    await page.keyboard.press("n");
  }
  await page.keyboard.press("3");
  await page.waitForFunction(() => document.body.innerText.includes("Symbol Name"), null, PATIENCE);
  await page.waitForTimeout(1000);
  const rows = await page.evaluate(() =>
    [...document.querySelectorAll("tr")].map((row) => [...row.querySelectorAll("td")].map((cell) => cell.innerText.trim())),
  );
  const shown = rows.filter((cells) => cells.length === 3);
  profiles.push(shown.map(([, own, name]) => [name, Number(/\(([\d.]+)%\)/.exec(own)?.[1] ?? 0)]));
}
console.log(JSON.stringify({ profiles, errors }));
await browser.close();
server.close();
