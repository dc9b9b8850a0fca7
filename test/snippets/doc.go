// Package snippets tests runners of snippets with real sandboxes.
package snippets
