"use strict"
const questions = JSON.parse(document.getElementById("data").textContent)
const forms = [...document.querySelectorAll("form")]
const unanswered = forms.map(form => form.cloneNode(true))
const WORDS = {yes: 1, y: 1, true: 1, no: 0, n: 0, false: 0, none: 0, nothing: 0, zero: 0, inf: Infinity, "+inf": Infinity, "-inf": -Infinity, nan: NaN}

function numbers(text) {
  const words = text.trim().split(/[\s,;[\](){}]+/).filter(Boolean)
  return words.map(word => WORDS[word.toLowerCase()] ?? (/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(word) ? Number(word) : null))
}
function equal(given, wanted) {
  if (given === null) return false
  if (typeof wanted === "string") return Object.is(given, WORDS[wanted])
  return Number.isInteger(wanted) ? given === wanted : Math.abs(given - wanted) <= 1e-3 * Math.abs(wanted)
}
const plain = text => text.replace(/[\s"'.`]+/g, "").toLowerCase()
function isRight(guess, question) {
  if (question.text !== undefined) {
    const shape = /^[a-z]\w*\[([\d,]*)\]$/.exec(question.text), extents = shape && shape[1]
    return plain(guess) === plain(question.text) || (Boolean(extents) && numbers(guess).join() === extents)
  }
  const given = numbers(guess)
  return given.length === question.numbers.length && given.every((number, i) => equal(number, question.numbers[i]))
}
function end(form, question, how) {
  form.className = how
  const output = form.querySelector("output")
  const word = document.createElement("b"), claim = document.createElement("div")
  word.textContent = how === "right" ? "Right: " : "The answer: "
  claim.className = "claim"
  claim.textContent = question.claim
  const printed = document.createElement("pre")
  printed.textContent = question.printed
  printed.hidden = !question.printed
  for (const each of form.querySelectorAll("button,input")) each.disabled = true
  output.replaceChildren(word, question.shown, printed, claim, ...otherNumbers(question))
  if (form.dataset.again && how === "right") forms[form.dataset.again].classList.add("again")
  let next = form.nextElementSibling
  while (next && !next.matches("details:not(.setup),form,h2")) next = next.nextElementSibling
  if (next && next.tagName === "DETAILS") next.open = true
  askAgain()
  reveal()
  form.dispatchEvent(new CustomEvent("answered", {bubbles: true, detail: {place: Number(form.dataset.again ?? forms.indexOf(form)), how}}))
}
// A button that runs the program of the question with other numbers: the value of each instruction changes with them.
function otherNumbers(question) {
  if (question.variants.length < 2) return []
  const button = document.createElement("button"), values = document.createElement("pre")
  let shown = 0
  button.type = "button"
  button.dataset.other = ""
  button.textContent = "Other numbers"
  values.setAttribute("aria-live", "polite")
  values.hidden = true
  button.addEventListener("click", () => {
    shown = (shown + 1) % question.variants.length
    values.textContent = question.variants[shown]
    values.hidden = false
  })
  return [button, values]
}
// Hide what follows a question until it is answered.
function reveal() {
  let seen = true
  for (const each of document.querySelector("main").children) {
    if (each.id === "score" || each.id === "again") continue
    each.hidden = !seen
    if (each.tagName === "FORM" && !each.matches(".right,.shown")) seen = false
  }
  const right = forms.filter(each => each.matches(".right,.again")).length
  const answered = forms.filter(each => each.matches(".right,.shown")).length
  const more = seen ? "" : `; ${forms.length - answered} to go`
  document.getElementById("score").textContent = `${right} of ${forms.length} right${more}`
}
function say(form, word, ...parts) {
  const b = document.createElement("b")
  b.textContent = word
  form.querySelector("output").replaceChildren(b, parts.filter(Boolean).join(" "))
}
function grade(form, question, guess) {
  if (isRight(guess, question)) return end(form, question, "right")
  form.classList.add("wrong")
  const typical = question.wrong.find(each => isRight(guess, each))
  say(form, typical ? "" : "Not quite. ", typical && typical.why, retry(form, question))
}
const retry = (form, question) =>
  `Try again, or ${question.hint && !form.classList.contains("hinted") ? "ask for a hint" : "show the answer"}.`
// The first click shows the hint, and the next one the answer.
function help(form, question) {
  if (!question.hint || form.classList.contains("hinted")) return end(form, question, "shown")
  form.classList.add("hinted")
  form.classList.remove("wrong")
  form.querySelector("[data-show]").textContent = "Show the answer"
  say(form, "Hint: ", question.hint)
}
function enter(form, question) {
  form.addEventListener("submit", event => {
    event.preventDefault()
    const input = form.querySelector("input")
    if (input && input.value.trim()) grade(form, question, input.value)
  })
  for (const button of form.querySelectorAll("button[data-choice]"))
    button.addEventListener("click", () => grade(form, question, button.dataset.choice))
  form.querySelector("button[data-show]").addEventListener("click", () => help(form, question))
}
// At the end, ask the questions again whose answers were shown.
function askAgain() {
  if (document.getElementById("again") || forms.some(form => !form.matches(".right,.shown"))) return
  const missed = forms.map((form, i) => i).filter(i => forms[i].className === "shown")
  if (!missed.length) return
  const section = document.createElement("section"), heading = document.createElement("h2")
  section.id = "again"
  heading.textContent = "Once more, the questions whose answers you have seen"
  section.append(heading)
  for (const i of missed) {
    const form = unanswered[i]
    form.dataset.again = i
    enter(form, questions[i])
    section.append(form)
  }
  document.getElementById("score").before(section)
}
forms.forEach((form, i) => enter(form, questions[i]))
reveal()
