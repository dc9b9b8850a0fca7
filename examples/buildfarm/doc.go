// Command buildfarm builds several changes of a project at once. It installs the project's
// packages one time, takes a snapshot, and starts each build from that.
package main
