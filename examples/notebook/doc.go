// Command notebook runs the cells of a Markdown file in one process, as a notebook does: what
// one cell declares, later cells can use.
package main
