-- The main job in Neovim's own LSP client: a trace lands, the warning is on its line, the quick fix is applied, the file
-- is saved, the warning is gone. Prints one JSON object. Environment: SERVER (JSON list), TRACE, SLUG, LINE (from 0).
local out = { steps = {} }
local function finish()
  io.stdout:write('RESULT ' .. vim.json.encode(out) .. '\n')
  vim.cmd('qall!')
end
local function wait(name, seconds, condition)
  local ok = vim.wait(seconds * 1000, condition, 20)
  out.steps[name] = ok
  if not ok then finish() end
end

vim.lsp.config('torchtraceap', { cmd = vim.json.decode(vim.env.SERVER) })
vim.lsp.enable('torchtraceap')
vim.cmd('filetype on')

local function run()
  local buffer = vim.api.nvim_get_current_buf()
  local function found()
    return vim.tbl_filter(function(d) return d.code == vim.env.SLUG end, vim.diagnostic.get(buffer))
  end
  wait('attached', 20, function() return #vim.lsp.get_clients({ bufnr = buffer }) > 0 end)
  local client = vim.lsp.get_clients({ bufnr = buffer })[1]
  wait('initialized', 20, function() return client.initialized end)
  vim.fn.mkdir('runs', 'p')
  assert(vim.uv.fs_copyfile(vim.env.TRACE, 'runs/first.pt.trace.json.gz'))
  wait('diagnostic', 60, function() return #found() > 0 end)
  local diagnostic = found()[1]
  out.line, out.message, out.severity = diagnostic.lnum, diagnostic.message, diagnostic.severity
  out.encoding = client.offset_encoding
  out.page = diagnostic.user_data.lsp.codeDescription and diagnostic.user_data.lsp.codeDescription.href

  vim.api.nvim_win_set_cursor(0, { diagnostic.lnum + 1, diagnostic.col })
  local position = vim.lsp.util.make_position_params(0, client.offset_encoding)
  local answer = client:request_sync('textDocument/hover', position, 10000, buffer)
  out.hover = answer and answer.result and answer.result.contents.value

  -- Two lines typed above: the editor keeps the old line number in the diagnostic until it is published again.
  vim.api.nvim_buf_set_lines(buffer, 0, 0, false, { '# one', '# two' })
  wait('shifted', 10, function() return #found() > 0 and found()[1].lnum == diagnostic.lnum + 2 end)
  vim.api.nvim_win_set_cursor(0, { diagnostic.lnum + 3, diagnostic.col })
  local before = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  vim.lsp.buf.code_action({ apply = true, filter = function(action) return action.isPreferred end })
  wait('applied', 10, function() return not vim.deep_equal(before, vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) end)
  vim.cmd('write')
  wait('gone', 20, function() return #found() == 0 end)
  out.text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n')
  out.left = vim.tbl_map(function(d) return d.code end, vim.diagnostic.get(buffer))
  out.messages = vim.api.nvim_exec2('messages', { output = true }).output
  client:stop()
  wait('stopped', 10, function() return client:is_stopped() end)
  finish()
end
vim.api.nvim_create_autocmd('VimEnter', { callback = function()
  vim.schedule(function()
    local ok, problem = pcall(run)
    if not ok then out.problem = tostring(problem) finish() end
  end)
end })
