"use strict"
{
const WORDS = new Set("False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield".split(" "))
const TOKEN = /(?<string>[rbfRBF]{0,2}(?:"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))|(?<comment>#[^\n]*)|(?<number>\b\d[\w.]*)|(?<name>[A-Za-z_]\w*)/g
const MOST_COLOURED = 20000, MOST_ROWS = 30
const data = JSON.parse(document.getElementById("data").textContent)
const editors = [...document.querySelectorAll(".editor")]
const here = location.pathname.replace(/\/$/, "")

async function post(action, content) {
  const response = await fetch(`${here}/${action}`, {
    method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(content), credentials: "omit",
  })
  if (!response.ok) throw new Error((await response.text()).trim())
  return response.json()
}

// The coloured copy below the text.
function colour(editor) {
  const area = editor.querySelector("textarea"), copy = editor.querySelector(".layers pre"), text = area.value
  const parts = []
  let done = 0
  editor.querySelector(".layers").classList.toggle("plain", text.length > MOST_COLOURED)
  if (text.length <= MOST_COLOURED) for (const match of text.matchAll(TOKEN)) {
    const kind = Object.keys(match.groups).find(name => match.groups[name] !== undefined)
    if (kind === "name" && !WORDS.has(match[0])) continue
    const part = document.createElement("i")
    part.className = kind === "name" ? "keyword" : kind
    part.textContent = match[0]
    parts.push(text.slice(done, match.index), part)
    done = match.index + match[0].length
  }
  copy.replaceChildren(...parts, text.slice(done) + "\n")
  area.rows = Math.min(text.split("\n").length + 1, MOST_ROWS)
  follow(editor)
}
function follow(editor) {
  const area = editor.querySelector("textarea"), copy = editor.querySelector(".layers pre")
  copy.scrollTop = area.scrollTop
  copy.scrollLeft = area.scrollLeft
}

// Keys: Tab indents, but leaves the editor after Escape and before anything was typed; Enter keeps the indentation;
// Ctrl+Enter runs.
function insert(area, text) {
  if (!document.execCommand("insertText", false, text)) {
    area.setRangeText(text, area.selectionStart, area.selectionEnd, "end")
    area.dispatchEvent(new Event("input"))
  }
}
function indent(area, isBack) {
  const {value, selectionStart, selectionEnd} = area
  if (!isBack && selectionStart === selectionEnd) return insert(area, " ".repeat(4 - (selectionStart - value.lastIndexOf("\n", selectionStart - 1) - 1) % 4))
  const begin = value.lastIndexOf("\n", selectionStart - 1) + 1
  const lines = value.slice(begin, selectionEnd).split("\n").map(line => isBack ? line.replace(/^ {1,4}/, "") : line && `    ${line}`)
  area.setSelectionRange(begin, selectionEnd)
  insert(area, lines.join("\n"))
  if (selectionStart !== selectionEnd) area.setSelectionRange(begin, begin + lines.join("\n").length)
}
function keys(editor, area) {
  let leaves = true
  area.addEventListener("keydown", event => {
    if (event.isComposing || event.altKey) return
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault()
      run(editor)
    } else if (event.key === "Escape") {
      leaves = true
      return
    } else if (event.key === "Tab" && !leaves && !event.ctrlKey && !event.metaKey) {
      event.preventDefault()
      indent(area, event.shiftKey)
    } else if (event.key === "Enter" && !event.shiftKey) {
      const line = area.value.slice(area.value.lastIndexOf("\n", area.selectionStart - 1) + 1, area.selectionStart)
      event.preventDefault()
      insert(area, "\n" + /^ */.exec(line)[0] + (/:\s*$/.test(line) ? "    " : ""))
    }
    if (event.key !== "Shift") leaves = false
  })
  area.addEventListener("blur", () => { leaves = true })
  area.addEventListener("pointerdown", () => { leaves = false })
}

// Runs.
const code = editor => editor.querySelector("textarea").value
function cells(last) {
  const found = []
  for (const [place, editor] of editors.slice(0, last + 1).entries()) {
    const setup = document.querySelector(`[data-setup="${place + 1}"]`)
    if (setup) found.push(["set-up", setup.textContent])
    found.push([editor.dataset.name, code(editor)])
  }
  return found
}
async function run(editor) {
  const button = editor.querySelector("[data-run]"), status = editor.querySelector(".status"), place = editors.indexOf(editor)
  if (button.getAttribute("aria-disabled") === "true") return
  button.setAttribute("aria-disabled", "true")
  status.textContent = "Running"
  const begun = performance.now()
  try {
    const found = data.draft ? await post("run", {source: code(editor)}) : await post("run", {cells: cells(place)})
    const parts = found.words === undefined ? found.parts : [{kind: found.solved ? "solved" : "error", text: found.words}, ...found.parts]
    show(editor, parts)
    const failed = parts.some(part => part.kind === "error")
    status.textContent = `${failed ? found.words === undefined ? "Failed" : "Not solved" : found.solved ? "Solved" : "Done"} after ${((performance.now() - begun) / 1000).toFixed(1)} s`
  } catch (error) {
    show(editor, [{kind: "error", text: error instanceof TypeError ? "The server does not answer: start it again with xbuild learn --serve." : error.message}])
    status.textContent = "Failed"
  }
  button.removeAttribute("aria-disabled")
}
// Pictures are in frames: those without a script take their height, and step pages run only their own script.
function show(editor, parts) {
  const out = editor.querySelector(".out"), name = editor.dataset.name
  for (const each of document.querySelectorAll(`[data-from="${editors.indexOf(editor) + 1}"]`)) each.classList.add("replaced")
  out.setAttribute("role", "region")
  out.setAttribute("aria-label", `output of ${name}`)
  out.replaceChildren(...parts.map((part, n) => {
    if (part.kind !== "picture" && part.kind !== "page") {
      const text = document.createElement("pre")
      text.className = part.kind
      text.tabIndex = 0
      text.textContent = part.text
      return text
    }
    const frame = document.createElement("iframe")
    frame.title = `${part.kind} ${n + 1} of ${name}`
    frame.className = part.kind
    frame.setAttribute("sandbox", part.kind === "page" ? "allow-scripts" : "allow-same-origin")
    if (part.kind === "page") frame.height = 720
    else frame.addEventListener("load", () => { frame.height = Math.min(frame.contentDocument.documentElement.scrollHeight + 4, 2000) })
    frame.srcdoc = part.kind === "page" ? part.text : `<!doctype html><meta charset="utf-8"><style>:root{color-scheme:light dark}body{margin:0;font:14px/1.45 ui-sans-serif,system-ui,sans-serif}svg{max-width:100%;height:auto}*{max-height:none!important}</style>${part.text}`
    return frame
  }))
  if (!parts.length) out.textContent = "The code ran and shows nothing. To see a value, print it, or write it as the last line."
}

// A program that a learner has begun stays in this browser.
const key = data.draft && `xbuild draft ${data.draft}`
function kept() {
  try { return key && localStorage.getItem(key) } catch { return null }
}
function keep(text) {
  try { if (key) localStorage.setItem(key, text) } catch { /* the browser keeps nothing */ }
}

for (const editor of editors) {
  const area = editor.querySelector("textarea"), original = area.value
  area.value = kept() || original
  area.addEventListener("input", () => { colour(editor); keep(area.value) })
  area.addEventListener("scroll", () => follow(editor))
  editor.querySelector("[data-run]").addEventListener("click", () => run(editor))
  editor.querySelector("[data-reset]").addEventListener("click", () => {
    area.value = original + (editor.dataset.added || "")
    keep(area.value)
    colour(editor)
    editor.querySelector(".out").replaceChildren()
    for (const each of document.querySelectorAll(`[data-from="${editors.indexOf(editor) + 1}"]`)) each.classList.remove("replaced")
  })
  keys(editor, area)
  colour(editor)
}
// After a question is answered, its cell runs its program, and the server notes a right answer.
document.addEventListener("answered", event => {
  const {place, how} = event.detail, question = data[place]
  if (how === "right") post("answer", {question: place}).catch(() => {})
  const editor = editors[question.editor - 1]
  if (!question.piece || question.isAdded || !editor) return
  question.isAdded = true
  const area = editor.querySelector("textarea"), added = `${area.value.trim() ? "\n\n" : ""}${question.piece}`
  editor.dataset.added = (editor.dataset.added || "") + added
  delete editor.dataset.empty
  area.value = area.value.trimEnd() + added
  area.setSelectionRange(0, 0)
  colour(editor)
})
}
