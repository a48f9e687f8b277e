-- Drives Neovim's own client: opens each file, asks, edits, and writes what came back as a line of JSON to $RESULTS.
local python, files, results = vim.env.PYTHON, vim.split(vim.env.FILES, "\n"), io.open(vim.env.RESULTS, "w")
local shown = {}
local client = vim.lsp.start_client({
  name = "xbuild",
  cmd = { python, "-m", "xbuild", "lsp" },
  root_dir = vim.env.ROOT,
  handlers = {
    ["textDocument/publishDiagnostics"] = function(problem, result, context, config)
      shown[result.uri] = (shown[result.uri] or 0) + 1
      return vim.lsp.diagnostic.on_publish_diagnostics(problem, result, context, config)
    end,
  },
})

local function milliseconds()
  return vim.loop.hrtime() / 1e6
end

local function ask(buffer, method, more)
  local place = vim.lsp.util.make_position_params(0, "utf-16")
  local answer = vim.lsp.buf_request_sync(buffer, method, vim.tbl_extend("force", place, more or {}), 60000)
  local found = answer and answer[client]
  return found and (found.result or found.error)
end

for _, file in ipairs(files) do
  local began = milliseconds()
  vim.cmd("edit " .. vim.fn.fnameescape(file))
  local buffer = vim.api.nvim_get_current_buf()
  local uri = vim.uri_from_bufnr(buffer)
  vim.bo[buffer].filetype = file:match("%.mlir$") and "mlir" or "hlo"
  vim.lsp.buf_attach_client(buffer, client)
  vim.wait(60000, function() return (shown[uri] or 0) > 0 end, 5)
  local seconds = (milliseconds() - began) / 1000
  local faults = #vim.diagnostic.get(buffer)
  -- the first operand of the last instruction with one
  local lines, has_operand = vim.api.nvim_buf_get_lines(buffer, 0, -1, false), false
  for number = #lines, 1, -1 do
    local _, _, place = lines[number]:gsub(", metadata=.*", ""):find("[%a-]%(()%%?[%a_][%w_.-]*[,)]")
    if not place then
      _, _, place = lines[number]:find("= stablehlo%.%w+ ()%%%w+")
    end
    if place and lines[number]:find(" = ") and not lines[number]:find("parameter%(") then
      vim.api.nvim_win_set_cursor(0, { number, place })
      has_operand = true
      break
    end
  end
  local hover, definition = ask(buffer, "textDocument/hover"), ask(buffer, "textDocument/definition")
  local references = ask(buffer, "textDocument/references", { context = { includeDeclaration = true } })
  local symbols, folds = ask(buffer, "textDocument/documentSymbol"), ask(buffer, "textDocument/foldingRange")
  local renamed = ask(buffer, "textDocument/rename", { newName = "renamed.by.editor" })
  local changed = 0
  if renamed and renamed.changes then
    vim.lsp.util.apply_workspace_edit(renamed, "utf-16")
    changed = vim.fn.searchcount({ pattern = [[renamed\.by\.editor]], maxcount = 0 }).total
  end
  -- break the text: the next diagnostics must show it
  local last = vim.api.nvim_buf_line_count(buffer)
  vim.api.nvim_buf_set_lines(buffer, last, last, false, { "} unfinished = f32[" })
  vim.wait(60000, function() return #vim.diagnostic.get(buffer) > faults end, 5)
  results:write(vim.fn.json_encode({
    file = file, seconds = seconds, faults = faults, broken = #vim.diagnostic.get(buffer), has_operand = has_operand,
    hover = hover and hover.contents and hover.contents.value or "", definition = definition and definition.range and definition.range.start.line or -1,
    line = vim.fn.line(".") - 1, references = references and #references or 0, symbols = symbols and #symbols or 0,
    folds = folds and #folds or 0, renamed = renamed and renamed.changes and #renamed.changes[uri] or 0, changed = changed,
  }) .. "\n")
  vim.api.nvim_buf_delete(buffer, { force = true })
end
results:close()
vim.lsp.stop_client(client)
vim.cmd("qa!")
