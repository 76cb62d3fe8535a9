// SPDX-License-Identifier: Apache-2.0

package extensionpointlogger

import (
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/pseudorandom"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
	"k8s.io/utils/clock"
)

// stateKey is the key of the *cycle in a cycle's state.
const stateKey framework.StateKey = Name

// sampleSeed is constant, so that all schedulers with the same sample rate log the same pods.
const sampleSeed = 0

// sampleSteps is the number of steps of the sample rate: the precision of a float64.
const sampleSteps = 1 << 53

// cycle holds what the lines of one attempt to schedule a pod have in common, including its binding.
type cycle struct {
	// number counts the profile's cycles from 1. It is 0 if unknown.
	number int64
	// begin is the time of the plugin's first call in the cycle.
	begin time.Time
	// logged is set if the pod is logged.
	logged bool
}

// Clone returns the cycle itself: it is immutable, and a copy of the state belongs to the same cycle.
func (c *cycle) Clone() framework.StateData {
	return c
}

// callLog writes a profile's calls to the scheduler's log. All methods may be called in parallel.
type callLog struct {
	sampleRate float64
	namespaces sets.String // empty for all
	names      names
	clock      clock.PassiveClock

	mutex  sync.Mutex
	cycles int64 // number of cycles so far
}

func newCallLog(args *config.ExtensionPointLoggerArgs, clock clock.PassiveClock) (*callLog, error) {
	names, err := newNames(args.Redact)
	if err != nil {
		return nil, err
	}
	return &callLog{sampleRate: *args.SampleRate, namespaces: sets.NewString(args.Namespaces...), names: names, clock: clock}, nil
}

// selects reports whether a pod's calls are logged. The result depends only on the arguments, the pod's namespace and
// its UID, so it is the same for all calls.
func (l *callLog) selects(pod *v1.Pod) bool {
	if len(l.namespaces) > 0 && !l.namespaces.Has(pod.Namespace) {
		return false
	}
	return l.sampleRate >= 1 || float64(pseudorandom.Below(pseudorandom.Key(sampleSeed, string(pod.UID)), sampleSteps)) < l.sampleRate*sampleSteps
}

// begin returns the cycle of a state. The first call in a cycle begins it.
func (l *callLog) begin(state *framework.CycleState, pod *v1.Pod) cycle {
	if begun := read(state); begun != nil {
		return *begun
	}
	if whatif.Is(state) {
		return cycle{}
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if begun := read(state); begun != nil {
		return *begun
	}
	l.cycles++
	begun := &cycle{number: l.cycles, begin: l.clock.Now(), logged: l.selects(pod)}
	state.Write(stateKey, begun)
	return *begun
}

// find is begin for calls with copies of the cycle's state, which other workers make at the same time: writes would be
// lost, or would race with a copy. If no call has begun the cycle, as in a profile with only Filter enabled, its number
// is unknown.
func (l *callLog) find(state *framework.CycleState, pod *v1.Pod) cycle {
	if begun := read(state); begun != nil {
		return *begun
	}
	return cycle{logged: !whatif.Is(state) && l.selects(pod)}
}

func read(state *framework.CycleState) *cycle {
	data, err := state.Read(stateKey)
	if err != nil {
		return nil
	}
	begun, _ := data.(*cycle)
	return begun
}

// write logs a call for a pod and, unless it is empty, a node. more are further keys and values.
func (l *callLog) write(extensionPoint string, c cycle, pod *v1.Pod, node string, more ...interface{}) {
	if !c.logged {
		return
	}
	line := []interface{}{"extensionPoint", extensionPoint, "profile", pod.Spec.SchedulerName, "pod", l.names.ofPod(pod)}
	if node != "" {
		line = append(line, "node", l.names.of(node))
	}
	if c.number > 0 {
		line = append(line, "cycle", c.number, "duration", l.clock.Since(c.begin))
	}
	klog.InfoS("Extension point called", append(line, more...)...)
}

// writeOther is write for a call with a second pod.
func (l *callLog) writeOther(extensionPoint string, c cycle, pod, other *v1.Pod, node string) {
	if c.logged {
		l.write(extensionPoint, c, pod, node, "otherPod", l.names.ofPod(other))
	}
}
