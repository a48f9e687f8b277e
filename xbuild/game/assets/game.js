"use strict";
// A state is [[begun, at, wait] for each device, [[device, item, state after]], can end, can hang].
const level = JSON.parse(document.getElementById("data").textContent);
const at = id => document.getElementById(id);
const made = (tag, name, ...inside) => { const e = document.createElement(tag); if (name) e.className = name; e.append(...inside); return e; };
const GOALS = level.repairs ? ["hang", "repair"] : ["hang", "end"];
const WORDS = { hang: "Make it hang", end: "Make it finish", repair: "Repair it" };
let goal = "hang", chosen = 0, way = [0], claimed = "", told = "";
const game = () => level.cases[chosen];
const state = () => game().states[way[way.length - 1]];
const ended = s => game().devices.every((items, d) => s[0][d][1] < 0 && s[0][d][0] === 2 ** items.length - 1);
const hangs = s => !s[1].length && !ended(s);
const can = which => level.cases.some(c => c.states[0][which === "end" ? 2 : 3]);

function item(d, n, moves) {
  const [name, op, before] = game().devices[d][n], [begun, now, wait] = state()[0][d];
  const move = moves.findIndex(m => m[0] === d && m[1] === n);
  const is = now === n ? "waiting" : begun >> n & 1 ? "done" : move >= 0 ? "ready" : "later";
  const box = made("button", `item ${is}`);
  box.type = "button";
  const mark = { waiting: "…", done: "✓", ready: move < 9 ? String(move + 1) : "▸", later: "" }[is];
  const words = made("span", "", made("code", "", name));
  const missing = game().devices[d].filter((_, k) => before >> k & 1 && !(begun >> k & 1)).map(each => each[0]);
  const after = missing.length ? `after ${missing.slice(-2).join(" and ")}` : "";
  const kind = name.startsWith(op) ? "" : op;
  const small = is === "waiting" ? game().waits[wait] : is === "later" ? after || (now >= 0 ? "the device waits" : "later") : kind;
  if (small) words.append(made("small", "", small));
  box.append(made("span", "mark", mark), words);
  box.disabled = is !== "ready";
  box.setAttribute("aria-label", `device ${d}, ${name}: ${is}${small ? `, ${small}` : ""}`);
  if (move >= 0) box.onclick = () => go(moves[move][2]);
  return box;
}

function drawDevices() {
  const s = state(), moves = s[1];
  at("devices").replaceChildren(...game().devices.map((items, d) => {
    const stuck = hangs(s) && s[0][d][1] >= 0;
    return made("div", stuck ? "device stuck" : "device", made("h2", "", `device ${d}`), ...items.map((_, n) => item(d, n, moves)));
  }));
}

// The moves to the nearest state that hangs, which explain why a state is doomed.
function nearestHang(from) {
  const came = new Map([[from, null]]), queue = [from];
  for (const n of queue) {
    if (hangs(game().states[n])) { const path = []; for (let k = n; came.get(k); k = came.get(k)[0]) path.unshift(came.get(k)[1]); return [n, path]; }
    for (const m of game().states[n][1]) if (!came.has(m[2])) { came.set(m[2], [n, m]); queue.push(m[2]); }
  }
  return null;
}

const waitsOf = s => s[0].map((p, d) => p[1] >= 0 ? `device ${d} ${game().waits[p[2]]}` : "").filter(Boolean).join("; ");
const named = m => `device ${m[0]} starts ${game().devices[m[0]][m[1]][0]}`;

function lastMove() {
  if (way.length < 2) return "";
  const m = game().states[way[way.length - 2]][1].find(each => each[2] === way[way.length - 1]);
  return m ? named(m) : "";
}

function doom() {
  const first = way.findIndex(n => !game().states[n][2]);
  const found = nearestHang(way[way.length - 1]);
  const end = found ? waitsOf(game().states[found[0]]) : "";
  const by = first > 0 ? game().states[way[first - 1]][1].find(m => m[2] === way[first]) : null;
  return (by ? `This was decided when ${named(by).replace(" starts ", " started ")}. ` : "No order of this program finishes. ") + `The program will hang like this: ${end}.`;
}

function status() {
  const s = state();
  if (claimed) return claimed;
  if (ended(s)) return [goal === "end" ? "won" : "", "All devices have finished.", goal === "hang" ? "Your goal was a hang. Undo, and try a different order." : ""];
  if (hangs(s)) return [goal === "hang" || goal === "repair" ? "won" : "lost", "The program hangs: no device can proceed.", `${waitsOf(s)[0].toUpperCase()}${waitsOf(s).slice(1)}.`];
  if (!s[2]) return [goal === "end" ? "lost" : "", "Doomed: every order from here hangs.", doom()];
  if (!s[3]) return [goal === "hang" ? "lost" : "", "Safe: no order from here hangs.", goal === "hang" && way.length > 1 ? `Since ${lastMove().replace(" starts ", " started ")}, the program can only finish. Undo, and try a different order.` : ""];
  return ["", "Undecided: some orders finish, and others hang.", "Choose an instruction that is ready."];
}

function drawStatus() {
  const [kind, words, more] = status();
  at("status").className = kind;
  at("status").replaceChildren(made("b", "", words), ...(more ? [made("small", "", more)] : []));
  document.body.dataset.outcome = ended(state()) ? "ended" : hangs(state()) ? "hangs" : state()[2] ? state()[3] ? "open" : "safe" : "doomed";
  document.body.dataset.won = kind === "won" ? "1" : "";
}

function drawTools() {
  at("undo").disabled = way.length < 2;
  at("claim").hidden = goal === "repair";
  at("claim").textContent = goal === "hang" ? "It cannot hang" : "It cannot finish";
}

function claim() {
  const possible = can(goal);
  claimed = possible
    ? ["lost", `It can: some order ${goal === "hang" ? "hangs" : "finishes"}.`, "Try to find that order."]
    : ["won", `Right: no order ${goal === "hang" ? "hangs" : "finishes"}.`, `The page has tried all ${level.cases.reduce((n, c) => n + c.states.length, 0)} states.`];
  draw();
}

function drawGoals() {
  at("goals").replaceChildren(...GOALS.map(each => {
    const b = made("button", "", WORDS[each]);
    b.type = "button"; b.setAttribute("role", "radio"); b.setAttribute("aria-checked", String(each === goal)); b.dataset.goal = each;
    b.onclick = () => { goal = each; claimed = ""; draw(); };
    return b;
  }));
}

function drawCases() {
  at("cases").hidden = level.cases.length < 2;
  at("cases").replaceChildren(...level.cases.map((each, n) => {
    const b = made("button", "", each.words || "the data");
    b.type = "button"; b.setAttribute("aria-pressed", String(n === chosen));
    b.onclick = () => { chosen = n; restart(); };
    return b;
  }));
}

function drawRepairs() {
  at("repairs").hidden = goal !== "repair";
  if (goal !== "repair") return;
  at("repairs").replaceChildren(made("h2", "", "Add an edge that prevents every hang:"), ...level.repairs.map((each, n) => {
    const b = made("button", "", each.words);
    b.type = "button"; b.dataset.repair = n;
    b.onclick = () => repair(each);
    return b;
  }));
}

function repair(each) {
  way = [0];
  if (each.is_right) claimed = ["won", `Right: with that edge (${each.words}), no order hangs.`, "The page has tried every order of the repaired program."];
  else {
    for (const [d, n] of each.moves) { const m = state()[1].find(m => m[0] === d && m[1] === n); if (!m) break; way.push(m[2]); }
    claimed = ["lost", `With that edge (${each.words}), the program still hangs.`, `${each.moves.map(named).join(", then ")}: ${waitsOf(state())}.`];
  }
  draw();
}

function go(n) { way.push(n); claimed = ""; draw(); }
function undo() { if (way.length > 1) { way.pop(); claimed = ""; draw(); } }
function restart() { way = [0]; claimed = ""; draw(); }
function draw() { drawGoals(); drawCases(); drawDevices(); drawStatus(); drawTools(); drawRepairs(); }

at("undo").onclick = undo;
at("again").onclick = restart;
at("claim").onclick = claim;
addEventListener("keydown", e => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === "u") undo();
  else if (e.key === "r") restart();
  else if (/^[1-9]$/.test(e.key) && state()[1][e.key - 1]) go(state()[1][e.key - 1][2]);
});
draw();
