package validation

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
)

func values(count int) []string {
	var values []string
	for i := 0; i < count; i++ {
		values = append(values, fmt.Sprintf("value-%d", i))
	}
	return values
}

func TestValidateMyScorePluginArgs(t *testing.T) {
	tests := []struct {
		name string
		args config.MyScorePluginArgs
		// want is part of each error, in order; none means that the args are valid.
		want []string
	}{
		{name: "a key with a prefix", args: config.MyScorePluginArgs{NodeLabel: "example.com/disk", PreferredValues: values(1)}},
		{name: "as many values as there are scores", args: config.MyScorePluginArgs{NodeLabel: "disk", PreferredValues: values(100)}},
		{
			name: "one value more",
			args: config.MyScorePluginArgs{NodeLabel: "disk", PreferredValues: values(101)},
			want: []string{"args.preferredValues: Too many: 101: must have at most 100"},
		},
		{
			name: "nothing given",
			want: []string{"args.nodeLabel: Invalid value: \"\"", "args.preferredValues: Required value"},
		},
		{
			name: "neither a key nor a value, and a value twice",
			args: config.MyScorePluginArgs{NodeLabel: "a b", PreferredValues: []string{"x", "y z", "x"}},
			want: []string{"args.nodeLabel: Invalid value", "args.preferredValues[1]: Invalid value", "args.preferredValues[2]: Duplicate value: \"x\""},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := ValidateMyScorePluginArgs(field.NewPath("args"), &tt.args)
			if (err == nil) != (len(tt.want) == 0) {
				t.Fatalf("got %v, want errors: %q", err, tt.want)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error %q does not contain %q", err, want)
				}
			}
		})
	}
}
