// Package units has the systemd units of gaol serve. Each option that hardens the service, and each
// that is left out although it is common, has its reason beside it.
package units
