# at: scaler.get_scale()
def log(writer, scaler, step):
    writer.add_scalar("scale", scaler.get_scale(), step)
