package v1beta3

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/pointer"
)

func addDefaultingFuncs(scheme *runtime.Scheme) error {
	return RegisterDefaults(scheme)
}

// SetDefaults_MyScorePluginArgs fills in what is not given: nodes with fast disks, by the label that Kubernetes' own
// documentation uses for it.
func SetDefaults_MyScorePluginArgs(obj *MyScorePluginArgs) {
	if obj.NodeLabel == nil {
		obj.NodeLabel = pointer.String("disktype")
	}
	if obj.PreferredValues == nil {
		obj.PreferredValues = []string{"ssd"}
	}
}

// SetDefaults_ExtensionPointLoggerArgs fills in what is not given: every pod is logged, with its name.
func SetDefaults_ExtensionPointLoggerArgs(obj *ExtensionPointLoggerArgs) {
	if obj.SampleRate == nil {
		obj.SampleRate = pointer.Float64(1)
	}
	if obj.Redact == nil {
		obj.Redact = pointer.Bool(false)
	}
	if obj.QueueSort == nil {
		obj.QueueSort = pointer.Bool(false)
	}
}

// SetDefaults_RandScoreArgs fills in what is not given.
func SetDefaults_RandScoreArgs(obj *RandScoreArgs) {
	if obj.Seed == nil {
		obj.Seed = pointer.Int64(0)
	}
}

// SetDefaults_PodFilterArgs fills in what is not given: what no rule speaks of is allowed.
func SetDefaults_PodFilterArgs(obj *PodFilterArgs) {
	if obj.DefaultAction == "" {
		obj.DefaultAction = FilterAllow
	}
}

// SetDefaults_NodeFilterArgs fills in what is not given: what no rule speaks of is allowed.
func SetDefaults_NodeFilterArgs(obj *NodeFilterArgs) {
	if obj.DefaultAction == "" {
		obj.DefaultAction = FilterAllow
	}
}

// SetDefaults_RunningImageLocalityArgs fills in what is not given: each image counts once and for the same.
func SetDefaults_RunningImageLocalityArgs(obj *RunningImageLocalityArgs) {
	if obj.Count == "" {
		obj.Count = CountImages
	}
	if obj.SizeWeight == nil {
		obj.SizeWeight = pointer.Int32(0)
	}
	if obj.SpreadWeight == nil {
		obj.SpreadWeight = pointer.Int32(0)
	}
}

// SetDefaults_ChaosArgs fills in what is not given: nothing is disturbed that is not asked for. The namespaces have no
// default.
func SetDefaults_ChaosArgs(obj *ChaosArgs) {
	if obj.Seed == nil {
		obj.Seed = pointer.Int64(0)
	}
	if obj.DryRun == nil {
		obj.DryRun = pointer.Bool(false)
	}
	if obj.RejectPercent == nil {
		obj.RejectPercent = pointer.Int32(0)
	}
	if obj.MaxConsecutiveRejections == nil {
		obj.MaxConsecutiveRejections = pointer.Int32(3)
	}
	if obj.RandomScore == nil {
		obj.RandomScore = pointer.Bool(false)
	}
	if obj.MaxPermitDelay == nil {
		obj.MaxPermitDelay = &metav1.Duration{}
	}
	if obj.RandomBindPercent == nil {
		obj.RandomBindPercent = pointer.Int32(0)
	}
}
