// SPDX-License-Identifier: Apache-2.0

package measured

import (
	"reflect"
	"testing"
	"time"
)

func TestSnapshot(t *testing.T) {
	samples := []Sample{{Value: 0.1}, {Value: 0.2}, {Missing: NoSeries}, {Value: 0.4}}
	s := New(7, time.Unix(1000, 0), 2, map[string]int32{"a": 1, "b": 0}, samples)
	if s.ID != 7 || !s.Taken.Equal(time.Unix(1000, 0)) || s.Slots != 2 {
		t.Errorf("the snapshot is %+v", s)
	}
	want := map[string][]Sample{"a": {{Missing: NoSeries}, {Value: 0.4}}, "b": {{Value: 0.1}, {Value: 0.2}}}
	for name, of := range want {
		if got := s.Node(name); !reflect.DeepEqual(got, of) || cap(got) != len(got) {
			t.Errorf("the samples of %s are %v with room for %d, want %v and no more room", name, got, cap(got), of)
		}
	}
	if got := s.Node("c"); got != nil {
		t.Errorf("an unknown node has the samples %v, want none", got)
	}
	all := map[string][]Sample{}
	s.Each(func(name string, samples []Sample) { all[name] = samples })
	if !reflect.DeepEqual(all, want) {
		t.Errorf("each node is %v, want %v", all, want)
	}
}

// TestReasons: all have a name of their own, for the metrics' label; Present is none of them.
func TestReasons(t *testing.T) {
	seen := map[string]bool{Present.String(): true}
	if Present.String() != "" {
		t.Errorf("Present is called %q", Present)
	}
	reasons := Reasons()
	for _, reason := range reasons {
		if seen[reason.String()] {
			t.Errorf("two reasons are called %q", reason)
		}
		seen[reason.String()] = true
	}
	if len(reasons) != int(TooOld) || reasons[0] != NoSeries || reasons[len(reasons)-1] != TooOld {
		t.Errorf("the reasons are %v, want those from no_series to too_old", reasons)
	}
}
