"use strict";
// A state is [[begun, at, wait] for each device, [[device, item, state after]], can end, can hang].
const level = JSON.parse(document.getElementById("data").textContent);
const at = id => document.getElementById(id);
const made = (tag, name, ...inside) => { const e = document.createElement(tag); if (name) e.className = name; e.append(...inside); return e; };
const GOALS = level.repairs ? ["hang", "repair"] : ["hang", "end"];
const WORDS = { hang: "Make it hang", end: "Make it finish", repair: "Repair it" };
let goal = "hang", chosen = 0, way = [0], claimed = null, repaired = null;
// The case on the board: the chosen one, or the program with the edge that the reader has added.
const game = () => repaired ? repaired.case : level.cases[chosen];
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

// The moves to the nearest state that hangs, which explain why an order is lost.
function nearestHang(from) {
  const came = new Map([[from, null]]), queue = [from];
  for (const n of queue) {
    if (hangs(game().states[n])) { const path = []; for (let k = n; came.get(k); k = came.get(k)[0]) path.unshift(came.get(k)[1]); return [n, path]; }
    for (const m of game().states[n][1]) if (!came.has(m[2])) { came.set(m[2], [n, m]); queue.push(m[2]); }
  }
  return null;
}

const waitsOf = s => s[0].map((p, d) => p[1] >= 0 ? `device ${d} ${game().waits[p[2]]}` : "").filter(Boolean).join("; ");
const sentence = text => `${text[0].toUpperCase()}${text.slice(1)}.`;
const named = m => `device ${m[0]} starts ${game().devices[m[0]][m[1]][0]}`;

// The move after which nothing but a hang, or nothing but an end, was possible. The page names it only after a claim.
function decided(which) {
  const first = way.findIndex(n => !game().states[n][which === "end" ? 2 : 3]);
  const by = first > 0 ? game().states[way[first - 1]][1].find(m => m[2] === way[first]) : null;
  return by ? `This was decided when ${named(by).replace(" starts ", " started ")}.` : "";
}

function status() {
  const s = state();
  if (claimed) return claimed;
  if (ended(s)) {
    if (goal === "hang") return ["", "All devices have finished.", "Your goal is a hang. Undo and try a different order, or claim that it cannot hang."];
    return [goal === "end" || repaired && repaired.is_right ? "won" : "", "All devices have finished.", repaired && !repaired.is_right ? "But another order of the program with this edge hangs." : ""];
  }
  if (hangs(s)) {
    const more = goal === "repair" && !repaired ? " Now add an edge that prevents every hang." : "";
    return [goal === "hang" ? "won" : goal === "end" || repaired ? "lost" : "", "The program hangs: no device can proceed.", sentence(waitsOf(s)) + more];
  }
  return ["", "Choose an instruction that is ready.", repaired ? `The program has the edge ${repaired.words}.` : ""];
}

function drawStatus() {
  const [kind, words, more] = status();
  at("status").className = kind;
  at("status").replaceChildren(made("b", "", words), ...(more ? [made("small", "", more)] : []));
  document.body.dataset.outcome = ended(state()) ? "ended" : hangs(state()) ? "hangs" : "open";
  document.body.dataset.won = kind === "won" ? "1" : "";
}

function drawTools() {
  at("undo").disabled = way.length < 2;
  at("claim").hidden = goal === "repair" || way.length > 1 && !state()[1].length;
  const words = goal === "hang" ? "cannot hang" : "cannot finish";
  at("claim").replaceChildren(`${way.length < 2 ? "It" : "From here, it"} ${words} `, made("kbd", "", "c"));
}

// The reader claims that no order reaches the goal: none at all before the first move, none from here after it.
function claim() {
  const begins = way.length < 2, verb = goal === "hang" ? "hangs" : "finishes", from = begins ? "" : " from here";
  const possible = begins ? can(goal) : state()[goal === "end" ? 2 : 3];
  const why = goal === "end" && !begins ? ` ${sentence(waitsOf(game().states[nearestHang(way[way.length - 1])[0]]))}` : "";
  claimed = possible
    ? ["lost", `It can: some order${from} ${verb}.`, "Try to find that order."]
    : begins
    ? ["won", `Right: no order ${verb}.`, `The page has tried all ${level.cases.reduce((n, c) => n + c.states.length, 0)} states.`]
    : ["", `Right: no order from here ${verb}.`, `${decided(goal)}${why} Undo, and try a different order.`.trim()];
  draw();
}

function drawGoals() {
  at("goals").replaceChildren(...GOALS.map(each => {
    const b = made("button", "", WORDS[each]);
    b.type = "button"; b.setAttribute("role", "radio"); b.setAttribute("aria-checked", String(each === goal)); b.dataset.goal = each;
    b.onclick = () => { goal = each; repaired = null; restart(); };
    return b;
  }));
}

function drawCases() {
  at("cases").hidden = level.cases.length < 2;
  at("cases").replaceChildren(...level.cases.map((each, n) => {
    const b = made("button", "", each.words || "the data");
    b.type = "button"; b.setAttribute("aria-pressed", String(n === chosen));
    b.onclick = () => { chosen = n; repaired = null; restart(); };
    return b;
  }));
}

function drawRepairs() {
  at("repairs").hidden = goal !== "repair";
  if (goal !== "repair") return;
  at("repairs").replaceChildren(made("h2", "", "Add an edge that prevents every hang:"), ...level.repairs.map((each, n) => {
    const b = made("button", "", each.words);
    b.type = "button"; b.dataset.repair = n; b.setAttribute("aria-pressed", String(each === repaired));
    b.onclick = () => repair(each === repaired ? null : each);
    return b;
  }));
}

// Put an edge into the program on the board, or take it out; a wrong edge shows a hang of the program with this edge.
function repair(each) {
  repaired = each;
  restart();
  if (!each) return;
  if (each.is_right) claimed = ["won", `Right: with the edge ${each.words}, no order hangs.`, "The edge is now in the program. Choose instructions in any order, and all devices finish."];
  else {
    const [end, moves] = nearestHang(0);
    way = [0, ...moves.map(m => m[2])];
    const shown = moves.map(named).join(", then ");
    claimed = ["lost", `With the edge ${each.words}, the program still hangs.`, `${shown ? `${sentence(shown)} ` : ""}${sentence(waitsOf(game().states[end]))}`];
  }
  draw();
}

function go(n) { way.push(n); claimed = null; draw(); }
function undo() { if (way.length > 1) { way.pop(); claimed = null; draw(); } }
function restart() { way = [0]; claimed = null; draw(); }
function draw() { drawGoals(); drawCases(); drawDevices(); drawStatus(); drawTools(); drawRepairs(); }

at("undo").onclick = undo;
at("again").onclick = restart;
at("claim").onclick = claim;
addEventListener("keydown", e => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === "u") undo();
  else if (e.key === "r") restart();
  else if (e.key === "c" && !at("claim").hidden) claim();
  else if (/^[1-9]$/.test(e.key) && state()[1][e.key - 1]) go(state()[1][e.key - 1][2]);
});
draw();
