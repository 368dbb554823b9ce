// Uses the page as a person does, in a headless Chromium: node use.mjs CHROMIUM URL
// Prints what it saw as JSON.
import { chromium } from "playwright-core";

const [executablePath, url] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const problems = [], asked = [];
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 640 } });
  page.setDefaultTimeout(120_000);
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => { if (message.type() === "error") problems.push(message.text()); });
  page.on("dialog", (dialog) => { problems.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => asked.push(request.url()));
  await page.goto(url);
  await page.waitForFunction(() => document.body.dataset.loaded === "true"
    && !document.getElementById("channel").textContent.startsWith("no "));
  const texts = async () => page.evaluate(() => Object.fromEntries(
    ["channel", "counts", "rate", "lamps", "missing", "detail", "clock"].map((id) => [id, document.getElementById(id).innerText])));
  const end = await texts();
  // Back in time: what was missing then is named, and the first message is explained.
  for (let i = 0; i < 4; i++) await page.click("#in");
  let missing = "";
  for (let place = 0; place <= 10_000 && !missing.includes("asked are"); place += 200) {
    await page.fill("#time", String(place));
    await page.waitForTimeout(300); // the text beside the picture is written four times a second
    missing = await page.evaluate(() => document.getElementById("missing").innerText);
  }
  await page.focus("#picture");
  for (let i = 0; i < 12; i++) await page.keyboard.press("ArrowLeft");
  await page.waitForFunction(() => document.getElementById("detail").innerText.includes("has it"));
  const past = await texts();
  const markup = await page.evaluate(() => document.querySelectorAll("b.evil, img, iframe").length);
  console.log(JSON.stringify({ end, past, missing, problems, asked, markup }));
} finally {
  await browser.close();
}
