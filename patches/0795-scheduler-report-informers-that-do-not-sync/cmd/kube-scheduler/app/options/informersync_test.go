// SPDX-License-Identifier: Apache-2.0

package options

import (
	"strings"
	"testing"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
)

func TestInformerSyncTimeout(t *testing.T) {
	config, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args    []string
		want    time.Duration
		invalid bool
	}{
		{nil, 5 * time.Minute, false},
		{[]string{"--informer-sync-timeout=0"}, 0, false},
		{[]string{"--informer-sync-timeout=-1s"}, -time.Second, true},
	} {
		o := NewOptions()
		o.ComponentConfig = config
		fs := o.Flags.FlagSet("misc")
		if err := fs.Parse(tt.args); err != nil || o.InformerSyncTimeout != tt.want {
			t.Errorf("%v: %v, %v, want %v", tt.args, o.InformerSyncTimeout, err, tt.want)
		}
		invalid := false
		for _, err := range o.Validate() {
			invalid = invalid || strings.Contains(err.Error(), "--informer-sync-timeout is -1s")
		}
		if invalid != tt.invalid {
			t.Errorf("%v: %v, want an error: %v", tt.args, o.Validate(), tt.invalid)
		}
	}
}
