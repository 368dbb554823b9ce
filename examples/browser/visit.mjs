// What the test does with the page, in a headless Chromium: node visit.mjs CHROMIUM URL TEXT
// It waits for a line of the Python program, says TEXT, and waits until that is acknowledged.
import { chromium } from "playwright-core";

const [executablePath, url, text] = process.argv.slice(2);
const TIMEOUT_MS = 120_000;

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(TIMEOUT_MS);
  page.on("console", (message) => console.error(message.text()));
  page.on("pageerror", (error) => console.error(error.message));
  await page.goto(url);
  await page.getByText(/: connected$/).waitFor();
  console.log("connected");
  await page.fill("#text", text);
  await page.click("button");
  await page.getByText(/^python: /).first().waitFor();
  console.log(await page.getByText(/^python: /).first().textContent());
  await page.getByText(/: acknowledged$/).waitFor();
  console.log("acknowledged");
} finally {
  await browser.close();
}
