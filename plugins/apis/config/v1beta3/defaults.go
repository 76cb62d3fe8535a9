package v1beta3

import "k8s.io/apimachinery/pkg/runtime"

func addDefaultingFuncs(scheme *runtime.Scheme) error {
	return RegisterDefaults(scheme)
}

// SetDefaults_MyScorePluginArgs fills in what is not given: nodes with fast disks, by the label that Kubernetes' own
// documentation uses for it.
func SetDefaults_MyScorePluginArgs(obj *MyScorePluginArgs) {
	if obj.NodeLabel == nil {
		label := "disktype"
		obj.NodeLabel = &label
	}
	if obj.PreferredValues == nil {
		obj.PreferredValues = []string{"ssd"}
	}
}
