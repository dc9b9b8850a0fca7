// Command plugins is a shop whose customers extend it with plugins. Each plugin runs in a
// sandbox of its own and sees only the functions that the shop offers.
package main
