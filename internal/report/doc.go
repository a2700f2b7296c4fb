// Package report prints stacks for eyes and for machines.
package report
