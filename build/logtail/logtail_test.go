// SPDX-License-Identifier: Apache-2.0

package logtail

import (
	"strings"
	"testing"
)

// crash is the scheduler's output when a plugin panics in Score.
const crash = `I1122 10:00:00.000000       1 server.go:1] "Starting"
E1122 10:00:01.000000       1 runtime.go:78] Observed a panic: "boom" (boom)
goroutine 7 [running]:
k8s.io/kubernetes/pkg/scheduler/framework/plugins/logged.(*Logged).Score(...)
	k8s.io/kubernetes/pkg/scheduler/framework/plugins/logged/plugin.go:1 +0x1
panic: boom [recovered]
	panic: boom

goroutine 7 [running]:
k8s.io/apimachinery/pkg/util/runtime.HandleCrash({0x0, 0x0, 0x0})
	k8s.io/apimachinery/pkg/util/runtime/runtime.go:55 +0xd8
k8s.io/kubernetes/pkg/scheduler/framework/plugins/twina.helper(...)
	k8s.io/kubernetes/pkg/scheduler/framework/plugins/twina/plugin.go:40 +0x1
k8s.io/kubernetes/pkg/scheduler/framework/plugins/twina.(*TwinA).Score(0x0)
	k8s.io/kubernetes/pkg/scheduler/framework/plugins/twina/plugin.go:30 +0x1
k8s.io/kubernetes/pkg/scheduler/framework/runtime.(*frameworkImpl).RunScorePlugins.func1(0x1)
	k8s.io/kubernetes/pkg/scheduler/framework/runtime/framework.go:900 +0x1

goroutine 1 [select]:
k8s.io/kubernetes/pkg/scheduler/framework/plugins/other.(*Other).Wait(0x0)
	k8s.io/kubernetes/pkg/scheduler/framework/plugins/other/plugin.go:1 +0x1
`

func TestPanic(t *testing.T) {
	lines := strings.Split(crash, "\n")
	for name, tt := range map[string]struct {
		text  string
		lines int
		want  []string
	}{
		"frames beyond the lines": {crash, 3, append(lines[5:8:8], lines[11:15]...)},
		"frames among the lines":  {crash, 8, lines[5:15]},
		"a frame is cut":          {crash, 7, lines[5:15]},
		"fatal error":             {"a\nfatal error: deadlock\nb\nc\n", 2, []string{"fatal error: deadlock", "b"}},
		"none":                    {strings.Join(lines[:5], "\n") + "\nno panic: here", 3, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, want := Panic(tt.text, tt.lines), strings.Join(tt.want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
