// How a reproduction ends: one JSON line that says what was expected, and what js-waku did.
export function tell(expected, got, reproduced) {
  console.log(JSON.stringify({ event: "reproduction", expected, got, reproduced }));
  process.exit(reproduced ? 0 : 1);
}
