/**
 * Answers of checker.js to many documents, in one process.
 *
 * Reads lines of JSON from standard input, {"document": base64, "data": base64 or null,
 * "rtol": number, "budget": steps}, and prints one line of JSON for each, in which a bound n 2^e / d
 * is [n, e, d] with hexadecimal n and d.
 */
"use strict";

const path = require("node:path");
const checker = require(path.join(__dirname, "../../../verify/web/checker.js"));

const decoded = (text) => (text === null ? null : new Uint8Array(Buffer.from(text, "base64")));

for (const line of require("node:fs").readFileSync(0, "utf8").split("\n")) {
  if (!line) continue;
  const { document, data = null, rtol, budget } = JSON.parse(line);
  const start = process.cpuUsage();
  let answer;
  try {
    const { status, kind, exitStatus, reason, upper, lower, ...rest } = checker.check(
      decoded(document),
      { data: decoded(data), rtol: rtol ?? 1e-6, budget: budget ?? null },
    );
    const exact = (q) => (q === null ? null : [q.n.toString(16), q.e, q.d.toString(16)]);
    const figures = checker.figures({ status, reason, upper, lower, ...rest });
    answer = {
      status,
      kind,
      exitStatus,
      reason,
      upper: exact(upper),
      lower: exact(lower),
      figures,
    };
  } catch (error) {
    answer = { status: "ERROR", kind: "internal", exitStatus: 1, reason: String(error.stack) };
  }
  const { user, system } = process.cpuUsage(start);
  console.log(JSON.stringify({ ...answer, seconds: (user + system) / 1e6 }));
}
