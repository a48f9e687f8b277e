// What a reader most likely looks for comes first: guides and reference before lists of files, tests and changes.
const LATE = /^(files|architecture|cold_reading|campaigns|changelog|contributing|op_status|assertions|documents|security|puzzles|lessons)$/;
const EARLY = /^(checker|guard|hangs|hang_stories|proving|sharding|cost|first_steps\/(jax|dump)|concepts\/|commands\/)/;
var Scorer = {
  score: result => {
    const [page, title, anchor, , score] = result;
    return score + (LATE.test(page) ? -30 : 0) + (EARLY.test(page) ? 12 : 0) - (anchor ? 2 : 0) - title.length / 100;
  },
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 25, partialTitle: 20, term: 5, partialTerm: 2,
};
