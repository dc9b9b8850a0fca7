// Package units contains the systemd units of gaol serve. A comment gives the reason for each option that
// hardens the service, and for each omitted one that is common.
package units
