package mcpstdio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Clients are the clients that Config knows.
var Clients = []string{"claude-code", "claude-desktop", "cursor", "vscode", "goose"}

// Command is how a client starts the proxy.
type Command struct {
	Path string
	Args []string
	Env  map[string]string
}

// files are the files of JSON to which clients add servers, and the member with the servers there.
var files = map[string]struct{ comment, member string }{
	"claude-desktop": {"claude_desktop_config.json (Settings, Developer, Edit Config)", "mcpServers"},
	"cursor":         {"~/.cursor/mcp.json, or .cursor/mcp.json in a project", "mcpServers"},
	"vscode":         {".vscode/mcp.json, or the command MCP: Open User Configuration", "servers"},
}

// goose is a file of YAML. Strings of JSON are strings of YAML, too.
const goose = `# ~/.config/goose/config.yaml
extensions:
  gaol:
    enabled: true
    type: stdio
    name: gaol
    cmd: %s
    args: %s
    envs: %s
    timeout: 300
`

// Config returns the configuration of a client that starts c, and where to paste it.
func Config(client string, c Command) (text string, err error) {
	entry := map[string]any{"command": c.Path, "args": c.Args, "env": c.Env}
	if client == "vscode" {
		entry["type"] = "stdio"
	}
	file, inFile := files[client]
	switch {
	case inFile:
		return "// " + file.comment + "\n" + encode(map[string]any{file.member: map[string]any{"gaol": entry}}, "  "), nil
	case client == "claude-code":
		return "# Run this command:\nclaude mcp add-json gaol " + quote(compact(entry)) + "\n", nil
	case client == "goose":
		return fmt.Sprintf(goose, compact(c.Path), compact(c.Args), compact(c.Env)), nil
	}
	return "", fmt.Errorf("--config %q: want one of %s", client, strings.Join(Clients, ", "))
}

func compact(v any) string { return strings.TrimSpace(encode(v, "")) }

func encode(v any, indent string) string {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		panic(err) // strings and maps of them have JSON
	}
	return text.String()
}

// quote quotes a text for the shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
