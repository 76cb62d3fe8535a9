// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

func TestChaosThatHasNothingToDoIsNoted(t *testing.T) {
	enabled := func(plugins ...string) schedulerconfig.PluginSet {
		var set schedulerconfig.PluginSet
		for _, plugin := range plugins {
			set.Enabled = append(set.Enabled, schedulerconfig.Plugin{Name: plugin})
		}
		return set
	}
	everywhere := func() schedulerconfig.Plugins {
		return schedulerconfig.Plugins{
			PreFilter: enabled("Chaos"), Filter: enabled("Chaos"), PreScore: enabled("Chaos"), Score: enabled("Chaos"),
			Reserve: enabled("Chaos"), Permit: enabled("Chaos"), Bind: enabled("Chaos", "DefaultBinder"),
		}
	}
	without := func(change func(*schedulerconfig.Plugins)) schedulerconfig.Plugins {
		plugins := everywhere()
		change(&plugins)
		return plugins
	}
	all := config.ChaosArgs{RejectPercent: 1, RandomScore: true, MaxPermitDelay: metav1.Duration{Duration: time.Second}, RandomBindPercent: 1}
	tests := []struct {
		name    string
		args    config.ChaosArgs
		plugins schedulerconfig.Plugins
		want    []string
	}{
		{name: "enabled everywhere", args: all, plugins: everywhere()},
		{name: "enabled nowhere", args: all},
		{name: "asked for nothing", plugins: without(func(p *schedulerconfig.Plugins) { p.Bind = enabled("DefaultBinder", "Chaos") })},
		{
			name: "at filter alone", args: config.ChaosArgs{RejectPercent: 1}, plugins: schedulerconfig.Plugins{Filter: enabled("Chaos")},
			want: []string{"note: profiles[2]: Chaos has rejectPercent and is not enabled at preFilter: it rejects nothing"},
		},
		{
			name: "at bind alone, and too late", args: config.ChaosArgs{RandomBindPercent: 1},
			plugins: schedulerconfig.Plugins{Bind: enabled("DefaultBinder", "Chaos")},
			want: []string{
				"note: profiles[2]: Chaos is enabled at bind behind DefaultBinder, which binds every pod: name Chaos and then DefaultBinder under bind.enabled, and \"*\" under bind.disabled",
				"note: profiles[2]: Chaos has randomBindPercent and is not enabled at preScore: it redirects nothing",
				"note: profiles[2]: Chaos has randomBindPercent and is not enabled at reserve: it redirects nothing",
			},
		},
		{
			name: "at preFilter alone", args: all, plugins: schedulerconfig.Plugins{PreFilter: enabled("Chaos")},
			want: []string{
				"note: profiles[2]: Chaos has rejectPercent and is not enabled at filter: it rejects nothing",
				"note: profiles[2]: Chaos has randomScore and is not enabled at score: it scores nothing",
				"note: profiles[2]: Chaos has maxPermitDelay and is not enabled at permit: it delays nothing",
				"note: profiles[2]: Chaos has randomBindPercent and is not enabled at preScore: it redirects nothing",
				"note: profiles[2]: Chaos has randomBindPercent and is not enabled at reserve: it redirects nothing",
				"note: profiles[2]: Chaos has randomBindPercent and is not enabled at bind: it redirects nothing",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := &schedulerconfig.KubeSchedulerProfile{PluginConfig: []schedulerconfig.PluginConfig{{Name: "Chaos", Args: &tt.args}}}
			if diff := cmp.Diff(tt.want, pointNotes(field.NewPath("profiles").Index(2), p, &tt.plugins)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}
