// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"errors"
	"reflect"
	"testing"
)

func TestLazyStatus(t *testing.T) {
	made := 0
	lazy := func() *Status {
		return NewLazyStatus(Unschedulable, func() string { made++; return "no node fits" })
	}
	statuses := PluginToStatus{"plugin": lazy().WithFailedPlugin("plugin")}
	merged := statuses.Merge()
	if merged.IsSuccess() || !merged.IsUnschedulable() || merged.FailedPlugin() != "plugin" || made != 0 {
		t.Errorf("the reason was built %d times before it was read", made)
	}
	if got := merged.Message(); got != "no node fits" {
		t.Errorf("the message is %q", got)
	}
	if err := merged.AsError(); err == nil || err.Error() != "no node fits" {
		t.Errorf("the error is %v", err)
	}
	merged.AppendReason("and more")
	if got := merged.Reasons(); !reflect.DeepEqual(got, []string{"no node fits", "and more"}) || made != 1 {
		t.Errorf("the reasons are %q, built %d times", got, made)
	}
	if plain := NewStatus(Unschedulable, "no node fits"); !plain.Equal(lazy()) || !lazy().Equal(plain) || lazy().Equal(NewStatus(Unschedulable)) {
		t.Error("the lazy status differs from a status with the same reason, or equals one without a reason")
	}
	statuses["other"] = AsStatus(errors.New("broken"))
	if merged := statuses.Merge(); merged.Code() != Error || len(merged.Reasons()) != 2+1 {
		t.Errorf("merging two statuses returned %v with %q", merged.Code(), merged.Reasons())
	}
}

func TestFitErrorWithSharedStatuses(t *testing.T) {
	shared := NewStatus(Unschedulable, "few cpus", "too many pods")
	err := &FitError{NumAllNodes: 4, Diagnosis: Diagnosis{NodeToStatusMap: NodeToStatusMap{
		"a": shared, "b": shared, "c": NewStatus(Unschedulable, "few cpus"), "d": NewStatus(UnschedulableAndUnresolvable, "taint"),
	}}}
	if got, want := err.Error(), "0/4 nodes are available: 1 taint, 2 too many pods, 3 few cpus."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
