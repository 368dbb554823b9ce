// Frame times of the page under use, in a headless Chromium:
//   node frames.mjs CHROMIUM URL MESSAGES SCREENSHOT
// Prints one JSON object: for each use of the page, milliseconds between frames.
import { chromium } from "playwright-core";

const [executablePath, url, messages, screenshot] = process.argv.slice(2);
const FRAMES = 240;
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const times = {};
try {
  const page = await browser.newPage({ viewport: { width: 1400, height: 800 } });
  page.setDefaultTimeout(600_000);
  page.on("pageerror", (error) => { console.error(error.message); process.exitCode = 1; });
  const begun = Date.now();
  await page.goto(url);
  await page.waitForFunction((wanted) => {
    const text = document.getElementById("counts").textContent.replaceAll(",", "");
    return Number(/(\d+) messages/.exec(text)?.[1]) >= wanted;
  }, Number(messages));
  const loaded = Date.now() - begun;

  // `use` runs before each frame; the time from one frame to the next is what a person sees.
  const measured = (name, use, ...values) => page.evaluate(
    async ([frames, source, rest]) => {
      const step = new Function("i", "n", "values", source);
      const found = [];
      let last = await new Promise(requestAnimationFrame);
      for (let i = 0; i < frames; i++) {
        step(i, frames, rest);
        const now = await new Promise(requestAnimationFrame);
        found.push(now - last);
        last = now;
      }
      return found;
    }, [FRAMES, use, values]).then((found) => { times[name] = found; });

  await page.click("#all");
  await measured("slider over all of time", `
    const slider = document.getElementById("time");
    slider.value = String(Math.round(10000 * (i + 1) / n));
    slider.dispatchEvent(new Event("input"));`);
  await page.screenshot({ path: screenshot });
  await measured("zoom in and out", `
    document.getElementById("picture").dispatchEvent(new WheelEvent("wheel",
      { deltaY: i < n / 2 ? -100 : 100, clientX: 700, clientY: 400, cancelable: true }));`);
  await page.click("#all");
  await measured("zoom of the lanes", `
    document.getElementById("picture").dispatchEvent(new WheelEvent("wheel",
      { deltaY: i < n / 2 ? -100 : 100, shiftKey: true, clientX: 700, clientY: 400, cancelable: true }));`);
  await page.click("#all");
  for (let i = 0; i < 3; i++) await page.click("#in");
  const pan = measured("pan, with half of the messages in sight", "");
  await page.mouse.move(900, 400);
  await page.mouse.down();
  for (let i = 0; i < 100; i++) await page.mouse.move(900 - i * 5, 400 + (i % 20));
  await page.mouse.up();
  await pan;
  await page.click("#all");
  await page.click("#live");
  await page.click("#all");
  await measured("live, all of time in sight", "");
  console.log(JSON.stringify({ loaded, times }));
} finally {
  await browser.close();
}
