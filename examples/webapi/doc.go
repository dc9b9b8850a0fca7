// Command webapi serves sandboxes over HTTP on localhost: POST /run returns the result of a
// program, and POST /stream sends its output while it runs.
package main
