// Two people in the chat of docs/how-to/web-app.md: node chat.mjs CHROMIUM URL [SCREENSHOT]
// Each writes one message; prints as JSON what each page shows once it has both.
import { chromium } from "playwright-core";

const [executablePath, url, screenshot] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  const people = [];
  for (const name of ["ann", "ben"]) {
    const page = await (await browser.newContext({ viewport: { width: 640, height: 240 } })).newPage();
    page.setDefaultTimeout(120_000);
    page.on("pageerror", (error) => { throw error; });
    await page.goto(url);
    await page.fill("#name", name);
    people.push(page);
  }
  const [ann, ben] = people;
  const write = async (page, text) => { await page.fill("#text", text); await page.click("button"); };
  await write(ann, "<b>anybody there?</b>");
  await ben.getByText("anybody there?").waitFor();
  await write(ben, "I am");
  for (const page of people) await page.getByText("ben: I am").waitFor();
  if (screenshot) await ann.screenshot({ path: screenshot });
  const shown = [];
  for (const page of people) shown.push(await page.locator("#messages li").allInnerTexts());
  console.log(JSON.stringify(shown));
} finally {
  await browser.close();
}
