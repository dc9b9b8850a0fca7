// Package npmrc finds the registries that npm is configured to use on the host, for the
// preset npm of permissions. It reads npm's files and variables itself, because gaol does
// not need npm on the host.
//
//	npmrc of all users ─> ~/.npmrc ─> project's .npmrc ─> npm_config_… ─> HOST:PORT
//
// Only hosts and ports are returned. Tokens and passwords are in none of its results and
// errors. What a registry's answers refer to, such as packages on another host, is not
// known.
package npmrc
