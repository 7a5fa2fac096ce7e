-- Neovim 0.11+ finds this file on its runtimepath; `vim.lsp.enable('torchtraceap')` uses it.
local root_markers = { 'pyproject.toml', 'setup.py', 'setup.cfg', 'requirements.txt', '.git' }

---@type vim.lsp.Config
return {
  cmd = { 'torchtraceap', 'serve' },
  filetypes = { 'python' },
  -- A script without any marker above it is its own project: traces are looked for beside it.
  root_dir = function(bufnr, on_dir)
    local name = vim.api.nvim_buf_get_name(bufnr)
    if name ~= '' then
      on_dir(vim.fs.root(bufnr, root_markers) or vim.fs.dirname(name))
    end
  end,
  settings = { torchtraceap = vim.empty_dict() },
}
