"use strict"
const questions = JSON.parse(document.getElementById("data").textContent)
const forms = [...document.querySelectorAll("form")]
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
  output.replaceChildren(word, question.shown, printed, claim)
  for (const each of form.querySelectorAll("button,input")) each.disabled = true
  let next = form.nextElementSibling
  while (next && !["DETAILS", "FORM", "H2"].includes(next.tagName)) next = next.nextElementSibling
  if (next && next.tagName === "DETAILS") next.open = true
  reveal()
}
// Hide what follows a question until it is answered.
function reveal() {
  let seen = true
  for (const each of document.querySelector("main").children) {
    if (each.id === "score") continue
    each.hidden = !seen
    if (each.tagName === "FORM" && !each.matches(".right,.shown")) seen = false
  }
  const right = forms.filter(each => each.className === "right").length
  const answered = forms.filter(each => each.matches(".right,.shown")).length
  const more = seen ? "" : `; ${forms.length - answered} to go`
  document.getElementById("score").textContent = `${right} of ${forms.length} right${more}`
}
function grade(form, question, guess) {
  if (isRight(guess, question)) return end(form, question, "right")
  form.className = "wrong"
  const word = document.createElement("b")
  word.textContent = "Not quite. "
  form.querySelector("output").replaceChildren(word, "Try again, or show the answer.")
}
forms.forEach((form, i) => {
  const question = questions[i]
  form.addEventListener("submit", event => {
    event.preventDefault()
    const input = form.querySelector("input")
    if (input && input.value.trim()) grade(form, question, input.value)
  })
  for (const button of form.querySelectorAll("button[data-choice]"))
    button.addEventListener("click", () => grade(form, question, button.dataset.choice))
  form.querySelector("button[data-show]").addEventListener("click", () => end(form, question, "shown"))
})
reveal()
